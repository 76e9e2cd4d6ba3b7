import { type Schedule, scheduleByTimer } from '../catalog/pipeline.ts';
import type { Snapshot } from '../catalog/snapshot.ts';
import type { ResponseCache } from './responses.ts';
import type { Refusal } from './sotw.ts';
import type { KnownResources } from './subscription.ts';

/** What is known of one limiter: one open ADS stream that has asked for RateLimitConfig. */
export interface LimiterClient {
  /** Of the stream, unique in this process. */
  readonly id: string;
  /** What the limiter calls itself; empty when it does not. */
  readonly nodeId: string;
  /** Who it is by its client certificate; empty without one. A node id is only what the limiter of this identity says. */
  readonly identity: string;
  /** `address:port`. */
  readonly peer: string;
  readonly protocol: 'sotw' | 'delta';
  readonly connectedMs: number;
  /** Domains that it asks for by name; undefined when it asks for all. It is sent no other. */
  readonly names: ReadonlySet<string> | undefined;
  /** Versions by domain of what it has accepted, all of it; undefined before its first acknowledgement. */
  readonly accepted: ReadonlyMap<string, string> | undefined;
  /** The snapshot version that it acknowledged last; undefined before. */
  readonly acceptedVersion: string | undefined;
  /** What it refused and has not yet been sent a replacement for; undefined when it is content. */
  readonly rejection: Rejection | undefined;
}

/** A NACK. */
export interface Rejection {
  /** Versions by domain of the set that was refused. */
  readonly refused: ReadonlyMap<string, string>;
  readonly snapshotVersion: string;
  /** The client's own words, cut to a bearable length. */
  readonly message: string;
  readonly atMs: number;
}

/** What people call a limiter: its node id or address, and the identity that says so. */
export function limiterName({ nodeId, peer, identity }: Pick<LimiterClient, 'nodeId' | 'peer' | 'identity'>) {
  return identity === '' ? nodeId || peer : `${nodeId || peer} (${identity})`;
}

/** Which limiters are connected, and what each has in force. */
export interface ClientRegistry {
  /** Adds a client, or replaces what was known of it. */
  put(client: LimiterClient): void;
  remove(id: string): void;
  /** Those that are connected. */
  all(): Iterable<LimiterClient>;
  /**
   * Those that are connected, without those that came a moment ago and have not answered yet: what they enforce will be
   * known in a moment, and whoever counts limiters must not count each time anew.
   */
  counted(): Iterable<LimiterClient>;
  /** How many are connected. */
  readonly size: number;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** How long one that has come may take to answer before it is waited for. Ours compiles 10,000 domains in less. */
const firstAnswerMs = 5_000;

/** Makes an empty registry. Timers are the process' own unless `schedule` is given. */
export function createClientRegistry({
  schedule = scheduleByTimer,
}: {
  readonly schedule?: Schedule;
} = {}): ClientRegistry {
  const clients = new Map<string, LimiterClient>();
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of [...listeners]) listener();
  };
  /** By id of those that are not counted yet, with what takes back that they will be. */
  const newcomers = new Map<string, () => void>();

  function welcome(id: string): void {
    const countIt = schedule(firstAnswerMs, () => {
      newcomers.delete(id);
      tell();
    });
    newcomers.set(id, countIt);
  }

  function count(id: string): void {
    newcomers.get(id)?.();
    newcomers.delete(id);
  }

  return {
    put(client) {
      const { id, accepted, rejection } = client;
      if (accepted !== undefined || rejection !== undefined) count(id);
      else if (!clients.has(id)) welcome(id);
      clients.set(id, client);
      tell();
    },
    remove(id) {
      count(id);
      if (clients.delete(id)) tell();
    },
    all: () => clients.values(),
    counted: () => [...clients.values()].filter(({ id }) => !newcomers.has(id)),
    get size() {
      return clients.size;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Keeps what the registry knows of one stream up to date. */
export interface LimiterRecord {
  /** It asks for these names from now on; undefined for all. */
  asksFor(names: ReadonlySet<string> | undefined): void;
  /** It has accepted a response to this snapshot; `refusal` is what it still rejects of earlier ones. */
  accepted(snapshot: Snapshot, has: KnownResources, refusal: Refusal | undefined): void;
  rejected(snapshot: Snapshot, refusal: Refusal): void;
  /** Something was sent: what was rejected before has got its replacement, but for `refusal`. */
  sent(refusal: Refusal | undefined): void;
  remove(): void;
}

/** What it takes. */
export interface LimiterRecordDeps {
  readonly clients: ClientRegistry;
  readonly cache: ResponseCache;
  readonly nowMs: () => number;
}

/** Puts a client in the registry that has not acknowledged anything yet. */
export function createLimiterRecord(
  { clients, cache, nowMs }: LimiterRecordDeps,
  identity: Pick<LimiterClient, 'id' | 'nodeId' | 'identity' | 'peer' | 'protocol' | 'connectedMs' | 'names'>,
): LimiterRecord {
  let client: LimiterClient = {
    ...identity,
    accepted: undefined,
    acceptedVersion: undefined,
    rejection: undefined,
  };
  const change = (news: Partial<LimiterClient>): void => {
    client = { ...client, ...news };
    clients.put(client);
  };
  const rejectionOf = ({ version }: Snapshot, { refused, message }: Refusal): Rejection => ({
    refused: cache.versions(refused),
    snapshotVersion: version,
    message,
    atMs: nowMs(),
  });
  change({});
  return {
    asksFor(names) {
      if (names !== client.names) change({ names });
    },
    accepted(snapshot, has, refusal) {
      change({
        accepted: cache.versions(has),
        // With some resources rejected, it does not have what others know under the version of the snapshot.
        acceptedVersion: refusal === undefined ? snapshot.version : `${snapshot.version}-partial`,
        rejection: refusal && rejectionOf(snapshot, refusal),
      });
    },
    rejected: (snapshot, refusal) => change({ rejection: rejectionOf(snapshot, refusal) }),
    sent(refusal) {
      const { rejection } = client;
      if (rejection === undefined) return;
      const left = refusal && {
        ...rejection,
        refused: cache.versions(refusal.refused),
        message: refusal.message,
      };
      change({ rejection: left });
    },
    remove: () => clients.remove(client.id),
  };
}

/**
 * Characters that change how the text around them is shown: control characters but for the line feed, marks of the
 * direction of text, separators of lines. A client could forge lines of a terminal or of a log with them.
 */
const unsafe = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Message of a NACK without one. */
export const unexplained = 'rejected without a message';

/** Text of a client for logs, statuses and pages: at most `maxLength` UTF-16 units, with unsafe characters as `\uXXXX`. */
export function clientText(text: string, maxLength: number): string {
  // The first cut bounds the work.
  const escaped = text.slice(0, maxLength).replaceAll(unsafe, escapeCharacter);
  // Well-formed again after the cut, which may have gone through a character.
  return escaped.slice(0, maxLength).toWellFormed();
}

function escapeCharacter(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}
