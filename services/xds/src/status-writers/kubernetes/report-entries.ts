import type { Logger } from '@tollgate/kit/logger';
import type { LimiterReport } from '../../domain/limiter-report.ts';
import { readLimiterReport } from '../../domain/read-limiter-report.ts';
import type { ReplicaReport } from '../../domain/reported-limiters.ts';
import { replicaOf } from '../../kubernetes/lease-elector.ts';
import type { ReflectorEvent } from '../../kubernetes/reflector.ts';

/** What the keys of the ConfigMap say, and how long each of them has been silent. */
export interface ReportEntries {
  read(event: ReflectorEvent): void;
  /** Reports of other replicas that are not silent; undefined before anything was read. */
  counting(): readonly ReplicaReport[] | undefined;
  /** Keys of replicas that are gone. */
  expired(): readonly string[];
}

/** What it takes. */
export interface ReportEntriesDeps {
  /** A clock in milliseconds that does not go back. */
  readonly now: () => number;
  readonly logger: Logger;
}

/** Most replicas that are counted: more than anybody runs, and their keys fit into a ConfigMap. */
const maxEntries = 100;

interface Entry {
  readonly text: string;
  /** Undefined where it is none. */
  readonly report: LimiterReport | undefined;
  /** When the text was another one last; long ago for a former life of this replica. */
  readonly changedMs: number;
}

/**
 * Makes entries that have read nothing. Clocks of different machines are never compared: a replica is silent for as long
 * as its entry has not changed, measured here, and only while there was something to be heard. This replica's own sign of
 * life comes back by the same way; when that stays away, the others may have spoken as well.
 */
export function createReportEntries(
  { own, expiryMs }: { readonly own: string; readonly expiryMs: number },
  { now, logger }: ReportEntriesDeps,
): ReportEntries {
  let entries: Map<string, Entry> | undefined;
  let heardMs = now();
  let unreadable = new Set<string>();

  /** What was there first under the name of this replica is of a life that has ended, unless it speaks up. */
  function firstSeenMs(key: string, nowMs: number): number {
    const isFormer = entries === undefined && replicaOf(key) === replicaOf(own);
    return isFormer ? Number.NEGATIVE_INFINITY : nowMs;
  }

  function note(texts: ReadonlyMap<string, string>): void {
    const before = entries ?? new Map<string, Entry>();
    const nowMs = now();
    const wasDeaf = nowMs - heardMs > expiryMs / 2;
    heardMs = nowMs;
    entries = new Map(
      [...texts].map(([key, text]): [string, Entry] => {
        const known = before.get(key);
        if (known?.text === text) return [key, wasDeaf ? { ...known, changedMs: nowMs } : known];
        const changedMs = known === undefined ? firstSeenMs(key, nowMs) : nowMs;
        return [key, { text, report: readLimiterReport(text), changedMs }];
      }),
    );
    reportUnreadable(entries);
  }

  /** Once for each replica: its text is another one every few seconds. */
  function reportUnreadable(present: ReadonlyMap<string, Entry>): void {
    const keys = [...present].filter(([, { report }]) => report === undefined).map(([key]) => key);
    for (const key of keys) {
      if (!unreadable.has(key))
        logger.warn({ key }, 'what a replica tells of its limiters is not understood');
    }
    unreadable = new Set(keys);
  }

  const isSilent = ({ changedMs }: Entry): boolean => heardMs - changedMs >= expiryMs;

  return {
    read(event) {
      note(event.type === 'deleted' ? new Map() : textsOf(event, own));
    },
    counting() {
      if (entries === undefined) return undefined;
      return [...entries].flatMap(([identity, entry]) =>
        entry.report === undefined || isSilent(entry)
          ? []
          : { identity, replica: replicaOf(identity), report: entry.report },
      );
    },
    expired: () => [...(entries ?? [])].filter(([, entry]) => isSilent(entry)).map(([key]) => key),
  };
}

/** Texts of the other replicas. */
function textsOf(event: ReflectorEvent, own: string): ReadonlyMap<string, string> {
  const object = event.type === 'replaced' ? event.objects[0] : event.object;
  const data = object?.manifest.data;
  if (typeof data !== 'object' || data === null) return new Map();
  const texts = Object.entries(data).filter(([key, text]) => key !== own && typeof text === 'string');
  return new Map(texts.slice(0, maxEntries));
}
