import type { StatsSnapshot } from './stats-registry.ts';

/** Where statistics go. None of its calls may throw because of, or wait for, the other side while the service runs. */
export interface StatsSink {
  /** As in `statsSinks`; for logs. */
  readonly name: string;
  /** Set by sinks that send single timings: at most `max` per timer are kept for them, and handed over every `everyMs`. */
  readonly timings?: { readonly max: number; readonly everyMs: number };
  /** Opens what the sink needs. Rejects only for what an operator must mend, such as a port in use. */
  start(): Promise<void>;
  /** Hands over what changed. Between two flushes there may be calls with nothing but timings. */
  flush(snapshot: StatsSnapshot): void;
  /** Sends what is left, within a bound, and releases everything. Idempotent. */
  close(): Promise<void>;
}
