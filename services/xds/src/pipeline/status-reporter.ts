import type { ClientRegistry } from '../clients/client-registry.ts';
import { groupLimiters } from '../domain/limiter-groups.ts';
import type { ObjectStatus } from '../domain/object-status.ts';
import { type DomainProgress, progressOf } from '../domain/programmed.ts';
import { sameStatus, statusOf } from '../domain/status-of.ts';
import type { Verdict } from '../domain/verdict.ts';
import type { StatusWriter } from '../ports/status-writer.ts';
import type { SnapshotStore } from '../snapshots/snapshot-store.ts';
import type { Schedule } from './schedule.ts';

/** What the reporter takes. */
export interface StatusReporterDeps {
  /** What is thought of every object. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly store: SnapshotStore;
  readonly clients: ClientRegistry;
  /** Undefined where objects have no status. */
  readonly writer: StatusWriter | undefined;
  readonly schedule: Schedule;
}

/** Keeps the status of every object up to date, and tells the writer of those that have changed. */
export interface StatusReporter {
  /** There is something new of objects, rules or limiters. */
  changed(): void;
  /** By id, as told last. */
  readonly statuses: ReadonlyMap<string, ObjectStatus>;
  close(): void;
}

/** Acknowledgements of hundreds of limiters come together; a person does not wait longer for this. */
const delayMs = 100;

/** Makes a reporter that follows the registry and the store until it is closed. */
export function createStatusReporter(deps: StatusReporterDeps): StatusReporter {
  const { verdicts, store, clients, writer, schedule } = deps;
  const told = new Map<string, Told>();
  const statuses = new Map<string, ObjectStatus>();
  let progresses = new Map<string, DomainProgress>();
  let cancel: (() => void) | undefined;
  let closed = false;

  function changed(): void {
    if (!closed) cancel ??= schedule(delayMs, report);
  }

  function report(): void {
    cancel = undefined;
    progresses = progressOfAll();
    const none = progressOf('', '', groupLimiters(clients.all()));
    for (const verdict of verdicts.values()) {
      tell(verdict, progresses.get(verdict.domain ?? '') ?? keep(told.get(verdict.id)?.progress, none));
    }
    for (const id of [...told.keys()]) if (!verdicts.has(id)) forget(id);
  }

  /** Of every domain that is served; the same object as before where nothing has changed. */
  function progressOfAll(): Map<string, DomainProgress> {
    const groups = groupLimiters(clients.all());
    const next = new Map<string, DomainProgress>();
    for (const { name, version } of store.current()?.resources.values() ?? [])
      next.set(name, keep(progresses.get(name), progressOf(name, version, groups)));
    return next;
  }

  function tell(verdict: Verdict, progress: DomainProgress): void {
    const before = told.get(verdict.id);
    if (before?.verdict === verdict && before.progress === progress) return;
    told.set(verdict.id, { verdict, progress });
    const status = statusOf(verdict, progress);
    const known = statuses.get(verdict.id);
    if (known !== undefined && sameStatus(known, status)) return;
    statuses.set(verdict.id, status);
    writer?.put(status);
  }

  function forget(id: string): void {
    told.delete(id);
    statuses.delete(id);
    writer?.forget(id);
  }

  const stops = [store.onChange(changed), clients.onChange(changed)];
  return {
    changed,
    statuses,
    close() {
      closed = true;
      cancel?.();
      for (const stop of stops) stop();
    },
  };
}

/** From what the status of an object was made. */
interface Told {
  readonly verdict: Verdict;
  readonly progress: DomainProgress;
}

function keep(before: DomainProgress | undefined, now: DomainProgress): DomainProgress {
  const isSame =
    before !== undefined &&
    before.version === now.version &&
    before.connected === now.connected &&
    before.acknowledged === now.acknowledged &&
    before.programmed.message === now.programmed.message;
  return isSame ? before : now;
}
