import type { LimiterReport } from '../domain/limiter-report.ts';
import type { ReplicaReport } from '../domain/reported-limiters.ts';

/** How replicas tell each other of their limiters. */
export interface LimiterReports {
  /** Tells the others of the limiters of this replica, and keeps telling it until there is another report. */
  publish(report: LimiterReport): void;
  /** What the others have told and is still true, as far as is known; undefined before it has been looked at first. */
  others(): readonly ReplicaReport[] | undefined;
  /** Calls the listener when others tell something new, until the returned function is called. */
  onChange(listener: () => void): () => void;
  start(): void;
  /** Takes back what was told. */
  close(): Promise<void>;
}
