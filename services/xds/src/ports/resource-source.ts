import type { SourceEvent } from '../domain/config-object.ts';

/** Why a source cannot follow its objects now. */
export interface SourceOutage {
  /** For people: what is wrong, and what to do about it. */
  readonly reason: string;
  /** Unix time in milliseconds. */
  readonly sinceMs: number;
}

/** Where RateLimitConfig objects come from. */
export interface ResourceSource {
  /**
   * Begins to follow the objects and hands every event to `onEvent`, in order. Resolves when it has begun; whether it has
   * synced tells the first event. Goes on through every outage of what it follows. Rejects when the source cannot be there
   * at all, such as a folder that does not exist or a kubeconfig that cannot be read.
   */
  start(onEvent: (event: SourceEvent) => void): Promise<void>;
  /** What keeps it from following its objects now, each reason once. Absent where nothing can be away for a while. */
  outages?(): readonly SourceOutage[];
  close(): Promise<void>;
}
