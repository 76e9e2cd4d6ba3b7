import { OAuthClientError, StoreError } from '../errors.ts';
import type { JsonObject } from '../key-case.ts';
import { isObject } from '../objects.ts';
import { errorMessage } from '../text.ts';
import { backoffDelayMs, Deadline, type Sleep } from '../timers.ts';

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

/**
 * Wraps a store so that its errors are StoreErrors. An operation that has not ended after
 * `timeoutMs` is one, too; what it writes later shows as a conflict.
 */
export function guardedStore(store: TokenStore, timeoutMs: number): TokenStore {
  return {
    get: (key) => guard('read', timeoutMs, async () => checkedEntry(await store.get(key))),
    set: (key, record, expectedVersion) =>
      guard('written', timeoutMs, async () => checkedOutcome(await store.set(key, record, expectedVersion))),
  };
}

/** Stores are written by users, possibly in JavaScript. */
function checkedEntry(entry: VersionedRecord | undefined): VersionedRecord | undefined {
  if (entry === undefined || (isObject(entry) && isObject(entry.record) && typeof entry.version === 'string'))
    return entry;
  throw new TypeError('`get` must return `{ record, version }`, or undefined');
}

function checkedOutcome(outcome: SetOutcome): SetOutcome {
  if (isObject(outcome) && (outcome.ok === false || typeof outcome.version === 'string')) return outcome;
  throw new TypeError("`set` must return `{ ok: true, version }` or `{ ok: false, reason: 'conflict' }`");
}

async function guard<T>(verb: string, timeoutMs: number, action: () => Promise<T>): Promise<T> {
  const deadline = new Deadline(timeoutMs, undefined);
  try {
    return await deadline.race(action());
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    const reason = deadline.signal.aborted ? `no result within ${timeoutMs} ms` : errorMessage(cause);
    throw new StoreError(`the token store cannot be ${verb}: ${reason}`, { cause, retryable: true });
  } finally {
    deadline.end();
  }
}

/**
 * Conflicts in a row before a store counts as broken; each means that another process has written.
 */
const maxConflicts = 10;

/** Shortest and longest wait after a conflict. */
const conflictBackoff = { baseDelayMs: 25, maxDelayMs: 500 };

/** Waits after each conflict, so that writers neither starve others nor try without an end. */
export class ConflictBackoff {
  readonly #sleep: Sleep;
  readonly #random: () => number;
  #conflicts = 0;

  constructor({ sleep, random }: { readonly sleep: Sleep; readonly random: () => number }) {
    this.#sleep = sleep;
    this.#random = random;
  }

  /** @throws StoreError after too many conflicts. */
  async wait(signal?: AbortSignal): Promise<void> {
    this.#conflicts += 1;
    if (this.#conflicts >= maxConflicts) {
      throw new StoreError(
        `the token store reported ${maxConflicts} conflicts in a row although the version had just been read: check that \`set\` accepts the version that \`get\` returns`,
        { retryable: true },
      );
    }
    await this.#sleep(backoffDelayMs(this.#conflicts, conflictBackoff, this.#random()), { signal });
  }

  /** Call this after progress: the next conflict is the first. */
  reset(): void {
    this.#conflicts = 0;
  }
}
