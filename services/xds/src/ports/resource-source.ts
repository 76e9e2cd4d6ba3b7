import type { SourceEvent } from '../domain/config-object.ts';

/** Where RateLimitConfig objects come from. */
export interface ResourceSource {
  /**
   * Begins to follow the objects and hands every event to `onEvent`, in order. Resolves when it has begun; whether it has
   * synced tells the first event. Goes on through every outage of what it follows. Rejects when the source cannot be there
   * at all, such as a folder that does not exist or a kubeconfig that cannot be read.
   */
  start(onEvent: (event: SourceEvent) => void): Promise<void>;
  close(): Promise<void>;
}
