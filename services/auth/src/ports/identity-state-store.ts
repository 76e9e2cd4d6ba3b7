import type { IdentityState } from './identity-states.ts';

/** Whose state is asked for. */
export interface IdentityKey {
  /** A UUID in lower case. */
  readonly userId: string;
  /** A UUID in lower case; absent for a token that names no session. */
  readonly sessionId: string | undefined;
}

/** Reads states where they are kept. */
export interface IdentityStateStore {
  /** States in the order of the keys; undefined for a user whom there is not. */
  findMany(keys: readonly IdentityKey[]): Promise<readonly (IdentityState | undefined)[]>;
}

/** Whose state has changed: that of users (UUIDs in lower case), or anybody's. */
export type ChangedIdentities = readonly string[] | 'all';
