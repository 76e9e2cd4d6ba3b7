import { groupLimiters, type LimiterGroup } from '../domain/limiter-groups.ts';
import { reportOf } from '../domain/limiter-report.ts';
import { createReportedLimiters } from '../domain/reported-limiters.ts';
import type { LimiterReports } from '../ports/limiter-reports.ts';
import type { SnapshotStore } from '../snapshots/snapshot-store.ts';
import type { ClientRegistry } from './client-registry.ts';

/** The limiters of all replicas, as far as this one knows. */
export interface LimiterFleet {
  /** Tells the other replicas of the limiters of this one, and answers those of all of them. */
  update(): readonly LimiterGroup[];
  /** Whether it is known what the other replicas have told. */
  isComplete(): boolean;
  /** How many limiters of other replicas there are. */
  elsewhere(): number;
  /** Calls the listener when there is something new, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** What it takes. */
export interface LimiterFleetDeps {
  readonly clients: ClientRegistry;
  readonly store: SnapshotStore;
  /** Undefined where a replica knows of none but itself. */
  readonly reports: LimiterReports | undefined;
}

/** Makes a fleet of the limiters of the registry and those that are reported. */
export function createLimiterFleet({ clients, store, reports }: LimiterFleetDeps): LimiterFleet {
  const reported = createReportedLimiters();
  if (reports !== undefined) store.onChange(reported.remember);

  return {
    update() {
      const own = [...clients.counted()];
      const snapshot = store.current();
      reports?.publish(reportOf(own, snapshot));
      return [...groupLimiters(own), ...reported.groups(reports?.others() ?? [])];
    },
    isComplete: () => reports === undefined || reports.others() !== undefined,
    elsewhere: () =>
      (reports?.others() ?? [])
        .flatMap(({ report }) => report.groups)
        .reduce((sum, { count }) => sum + count, 0),
    onChange(listener) {
      const stops = [clients.onChange(listener), reports?.onChange(listener)];
      return () => {
        for (const stop of stops) stop?.();
      };
    },
  };
}
