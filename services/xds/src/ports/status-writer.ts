import type { ObjectStatus } from '../domain/object-status.ts';

/** Who reports back to the objects. */
export interface StatusWriter {
  /** Takes note of what the status of an object is to be; written later, and only if it differs from what is there. */
  put(status: ObjectStatus): void;
  /** The object is gone: there is nothing to write any more. */
  forget(id: string): void;
  start(): Promise<void>;
  close(): Promise<void>;
}
