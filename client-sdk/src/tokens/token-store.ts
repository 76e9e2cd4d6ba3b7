import { OAuthClientError, StoreError } from '../errors.ts';
import type { JsonObject } from '../key-case.ts';

/** The record of a key in a store. Plain JSON with secrets. */
export interface TokenRecord {
  /** The result of `AccessToken.toStored()`; missing until the first token was acquired. */
  readonly token?: JsonObject;
  /** The process that is renewing the token. */
  readonly lease?: TokenLease;
  /** The token was revoked: managers must not use the token they were created with. */
  readonly revoked?: true;
}

/**
 * Held by the process that renews the token, so that no other process sends the same refresh token.
 */
export interface TokenLease {
  /** A random name. */
  readonly holder: string;
  /** How long it lasts. */
  readonly seconds: number;
  /** Epoch seconds by the holder's clock. */
  readonly expiresAt: number;
}

/** A record and its version. */
export interface VersionedRecord {
  readonly record: TokenRecord;
  /** Opaque; unique for every write under the key. */
  readonly version: string;
}

/**
 * The result of a write: `conflict` if the version was not the expected one, and nothing was
 * written.
 */
export type SetOutcome =
  | { readonly ok: true; readonly version: string }
  | { readonly ok: false; readonly reason: 'conflict' };

/**
 * A place that managers share tokens in. It needs compare-and-swap: a Redis script, a KV store with
 * versions, a row with a version column, a Kubernetes object with its resourceVersion. Test an
 * implementation with `tokenStoreContract` of `./testing`.
 */
export interface TokenStore {
  /**
   * The current record; undefined if there is none. Writes are visible to every later read, in any
   * process.
   */
  get(key: string): Promise<VersionedRecord | undefined>;
  /**
   * Writes only if the current version is `expectedVersion` (undefined: only if there is no
   * record). Of several writers that expect the same version, exactly one succeeds.
   */
  set(key: string, record: TokenRecord, expectedVersion: string | undefined): Promise<SetOutcome>;
}

const conflict: SetOutcome = { ok: false, reason: 'conflict' };

/** A store in memory that the managers of one process can share. Records are copied. */
export function memoryTokenStore(): TokenStore {
  const records = new Map<string, { json: string; version: string }>();
  let lastVersion = 0;

  return {
    get(key) {
      const entry = records.get(key);
      if (entry === undefined) return Promise.resolve(undefined);
      // Written by this store.
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

/** The same store, whose errors are StoreErrors. */
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
