import { OAuthClientError, StoreError } from '../errors.ts';
import type { JsonObject } from '../keys.ts';

/** What a store holds under one key. Plain JSON; it contains secrets. */
export interface TokenRecord {
  /** As `AccessToken.toStored()` gives it; missing until the first token has been acquired. */
  readonly token?: JsonObject;
  /** Who is renewing the token at the moment. */
  readonly lease?: TokenLease;
  /** The token was revoked: nobody begins anew with the token that he was started with. */
  readonly revoked?: true;
}

/** Says that somebody renews the token, so that nobody else sends the same refresh token. */
export interface TokenLease {
  /** A random name. */
  readonly holder: string;
  /** How long it lasts. */
  readonly seconds: number;
  /** Epoch seconds by the holder's clock. */
  readonly expiresAt: number;
}

/** A record and which version of it was read. */
export interface VersionedRecord {
  readonly record: TokenRecord;
  /** Opaque; different after every write under the key. */
  readonly version: string;
}

/** What became of a write: `conflict` when the version was not the expected one, and nothing was written. */
export type SetOutcome =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: 'conflict' };

/**
 * Where managers share tokens: any place with compare-and-swap (a Redis script, a KV store with versions, a row with a
 * version column, a Kubernetes object with its resourceVersion). `tokenStoreContract` of `./testing` says whether one is right.
 */
export interface TokenStore {
  /** The current record; undefined when there is none. What was written is visible to every later read, in any process. */
  get(key: string): Promise<VersionedRecord | undefined>;
  /**
   * Writes only if the current version still is `expectedVersion` (undefined: only if there is no record). Of several writers
   * that expect the same version, exactly one succeeds.
   */
  set(key: string, record: TokenRecord, expectedVersion: string | undefined): Promise<SetOutcome>;
}

const conflict: SetOutcome = { ok: false, reason: 'conflict' };

/** A store that several managers of one process can share; gone with the process. Records are copied in and out. */
export function memoryTokenStore(): TokenStore {
  const records = new Map<string, { json: string; version: string }>();
  let lastVersion = 0;

  return {
    get(key) {
      const entry = records.get(key);
      if (entry === undefined) return Promise.resolve(undefined);
      // What this store wrote itself needs no check.
      const record = JSON.parse(entry.json) as TokenRecord;
      return Promise.resolve({ record, version: entry.version });
    },
    set(key, record, expectedVersion) {
      if (records.get(key)?.version !== expectedVersion) return Promise.resolve(conflict);
      lastVersion += 1;
      const version = String(lastVersion);
      records.set(key, { json: JSON.stringify(record), version });
      return Promise.resolve({ ok: true, version });
    },
  };
}

/** The same store; whatever it throws comes out as a StoreError. */
export function guardedStore(store: TokenStore): TokenStore {
  return {
    get: (key) => guard('read', () => store.get(key)),
    set: (key, record, expectedVersion) => guard('written', () => store.set(key, record, expectedVersion)),
  };
}

async function guard<T>(verb: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StoreError(`the token store cannot be ${verb}: ${reason}`, { cause, retryable: true });
  }
}
