import type { AnyClient } from '../client.ts';
import { Stopwatch } from '../clock.ts';
import {
  ConfigurationError,
  OAuthClientError,
  OAuthError,
  TimeoutError,
  TokenUnavailableError,
} from '../errors.ts';
import type { WireParams } from '../http/options.ts';
import type { JsonObject, KeyCase } from '../key-case.ts';
import { isObject } from '../objects.ts';
import { errorMessage } from '../text.ts';
import { Deadline, type Sleep } from '../timers.ts';
import { AccessToken, type AnyAccessToken } from './access-token.ts';
import type { AccessTokenOptions, TokenFailure } from './options.ts';
import { receivedToken } from './request-token.ts';
import { ConflictBackoff, type TokenRecord, type TokenStore, type VersionedRecord } from './token-store.ts';

/**
 * How far the clocks of two machines may differ before one takes over a lease that the other still
 * holds.
 */
const clockToleranceSeconds = 60;

/**
 * Decides whether another process still holds its lease. A lease ends when it was unchanged for its
 * own length by our clock, so that clocks need not agree. For processes that start long after the
 * holder died, it also ends by the wall clock, with a tolerance.
 */
export class LeaseWatch {
  readonly #holder: string;
  #seen: { readonly version: string; readonly sinceSeconds: number } | undefined;

  constructor(holder: string) {
    this.#holder = holder;
  }

  /**
   * Whether to wait for the holder of the lease in this record. `waitedSeconds` is the time waited
   * so far.
   */
  mustWait(entry: VersionedRecord | undefined, now: number, waitedSeconds: number): boolean {
    const lease = entry?.record.lease;
    if (entry === undefined || lease === undefined || lease.holder === this.#holder) return false;
    if (this.#seen?.version !== entry.version)
      this.#seen = { version: entry.version, sinceSeconds: waitedSeconds };
    const watchedSeconds = waitedSeconds - this.#seen.sinceSeconds;
    return watchedSeconds < lease.seconds && now <= lease.expiresAt + clockToleranceSeconds;
  }
}

/**
 * Gets a token without a refresh token: `({ signal }) => client.clientCredentials.getToken({}, {
 * signal })`.
 */
export type AcquireToken<Keys extends KeyCase = KeyCase> = (options: {
  readonly signal: AbortSignal;
}) => Promise<AccessToken<JsonObject, Keys> | TokenFailure>;

/** Dependencies of renewals; they last as long as a TokenManager. */
export interface RenewalContext {
  readonly client: AnyClient;
  readonly acquire: AcquireToken | undefined;
  /** Sent with every refresh, `scope` or `resource` for example. */
  readonly refreshParams: WireParams;
  readonly store: TokenStore;
  readonly key: string;
  /** Used while the store is empty. */
  readonly seed: AnyAccessToken | undefined;
  /** Options of tokens from the store that cannot be stored, such as functions. */
  readonly tokenOptions: AccessTokenOptions;
  /** A random name of this manager. */
  readonly holder: string;
  readonly leaseSeconds: number;
  readonly sleep: Sleep;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  /** Called if the store cannot be written; the token is valid nevertheless. */
  readonly onStoreError: (error: unknown) => void;
}

/** A new token, or the error that says that the refresh token is not valid any more. */
type RefreshOutcome =
  | { readonly ok: true; readonly token: AnyAccessToken }
  | { readonly ok: false; readonly error: OAuthError };

/**
 * @throws OAuthClientError for failures other than `invalid_grant`: the refresh token may still be
 * valid.
 */
async function refreshToken(
  { refreshParams }: RenewalContext,
  token: AnyAccessToken,
  signal: AbortSignal,
): Promise<RefreshOutcome> {
  try {
    return { ok: true, token: await token.refresh(refreshParams, { signal, throwOnError: true }) };
  } catch (error) {
    if (error instanceof OAuthError && error.code === 'invalid_grant') return { ok: false, error };
    throw error;
  }
}

/**
 * @throws TokenUnavailableError without `acquire`, unless there is a `refreshError`; or if
 * `acquire` throws, with its error as cause unless that is one of this library.
 */
async function acquireToken(
  { acquire }: RenewalContext,
  signal: AbortSignal,
  refreshError: OAuthError | undefined,
): Promise<AnyAccessToken> {
  if (acquire === undefined) {
    if (refreshError !== undefined) throw refreshError;
    throw new TokenUnavailableError(
      'there is neither a token nor a refresh token: give the TokenManager a `token`, an `acquire`, or call `setToken`',
    );
  }
  const outcome = await callAcquire(acquire, signal);
  if (!isObject(outcome) || typeof outcome.ok !== 'boolean')
    throw new ConfigurationError('`acquire` must return an AccessToken, such as that of a grant');
  if (!outcome.ok) throw outcome.error;
  return outcome;
}

async function callAcquire(acquire: AcquireToken, signal: AbortSignal): ReturnType<AcquireToken> {
  try {
    return await acquire({ signal });
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    throw new TokenUnavailableError(`\`acquire\` failed: ${errorMessage(cause)}`, { cause, retryable: true });
  }
}

/** The state of the caller. */
export interface RenewalRequest {
  /** The caller's token: a valid one that differs from it is returned. */
  readonly known: AnyAccessToken | undefined;
  readonly unsaved: UnsavedToken | undefined;
  /**
   * Aborts waiting, but no request in flight: its response may be the only copy of a refresh token.
   */
  readonly signal: AbortSignal;
}

/** A token that could not be written to the store. */
export interface UnsavedToken {
  readonly token: AnyAccessToken;
  /**
   * The version in the store at that time; any other means that another process has renewed the
   * token.
   */
  readonly version: string | undefined;
}

/** The token to use, and whether it still has to be stored. */
export interface Renewal {
  readonly token: AnyAccessToken;
  readonly unsaved: UnsavedToken | undefined;
}

/** First and longest pause between two reads of a lease; a refresh takes about as long. */
const firstPollMs = 25;
const longestPollMs = 500;

/** Attempts to store a token that spent a refresh token, before it is kept in memory only. */
const saveAttempts = 3;

/** Longest wait, in leases: holders may die one after another. */
const maxLeases = 3;

/**
 * The part of a lease after which the request is aborted, so that it ends before others take over.
 */
const requestShare = 0.8;

/**
 * Gets a valid token other than the known one: from the store if another process has put it there,
 * else by a refresh (or acquisition) under a lease, so that one process alone makes it. On failure
 * the store keeps the old token.
 *
 * @throws StoreError, TokenUnavailableError, TimeoutError, or whatever the token request throws.
 */
export async function renewToken(context: RenewalContext, request: RenewalRequest): Promise<Renewal> {
  const { store, key, holder, leaseSeconds, client, sleep, random } = context;
  const watch = new LeaseWatch(holder);
  const conflicts = new ConflictBackoff(context);
  let pausedSeconds = 0;
  const waiting = new Stopwatch(() => pausedSeconds);
  for (let looks = 0; ; looks += 1) {
    request.signal.throwIfAborted();
    const waitedSeconds = waiting.elapsedSeconds();
    if (waitedSeconds > maxLeases * leaseSeconds) throw leaseTimeout(waitedSeconds);
    const entry = await store.get(key);
    const unsaved = request.unsaved?.version === entry?.version ? request.unsaved?.token : undefined;
    const current = unsaved ?? restoreToken(context, entry);
    if (current !== undefined && isValid(current) && current.token !== request.known?.token) {
      const isStored = unsaved === undefined && entry?.record.token !== undefined;
      if (isStored) return { token: current, unsaved: undefined };
      return saveToken(context, { token: current, basedOn: entry, version: entry?.version });
    }
    const now = client.settings.now();
    if (watch.mustWait(entry, now, waitedSeconds)) {
      const pauseMs = Math.min(longestPollMs, firstPollMs * 2 ** looks) * (0.5 + random() / 2);
      await sleep(pauseMs, { signal: request.signal });
      pausedSeconds += pauseMs / 1000;
      conflicts.reset();
      continue;
    }
    const lease = { holder, seconds: leaseSeconds, expiresAt: now + leaseSeconds };
    // Before the lease is written: a store that responds late must not prolong it.
    const deadline = new Deadline(Math.ceil(leaseSeconds * requestShare * 1000), undefined);
    try {
      const claim = await store.set(key, { ...heldRecord(current, entry), lease }, entry?.version);
      if (claim.ok) {
        const held = { current, basedOn: entry, version: claim.version };
        const renewal = await renewUnderLease(context, held, deadline);
        if (renewal !== undefined) return renewal;
      }
    } finally {
      deadline.end();
    }
    await conflicts.wait(request.signal);
  }
}

interface Claim {
  readonly current: AnyAccessToken | undefined;
  readonly basedOn: VersionedRecord | undefined;
  /** The version that holds our lease. */
  readonly version: string;
}

/** Undefined if another process was faster: the store must be read again. */
async function renewUnderLease(
  context: RenewalContext,
  claim: Claim,
  deadline: Deadline,
): Promise<Renewal | undefined> {
  const { store, key, leaseSeconds } = context;
  const { signal } = deadline;
  let token: AnyAccessToken;
  try {
    const { current } = claim;
    const refreshed =
      current?.refreshToken === undefined
        ? undefined
        : await deadline.race(refreshToken(context, current, signal));
    if (refreshed?.ok === false && (await store.get(key))?.version !== claim.version) return undefined;
    token =
      refreshed?.ok === true
        ? refreshed.token
        : await deadline.race(acquireToken(context, signal, refreshed?.error));
  } catch (error) {
    const received = receivedToken(error);
    // The refresh token is spent: its successor must not be lost with the error.
    if (received !== undefined)
      await saveToken(context, { token: received, basedOn: claim.basedOn, version: claim.version });
    else await giveBackLease(context, claim);
    throw signal.aborted ? requestTimeout(leaseSeconds, error) : error;
  }
  return saveToken(context, { token, basedOn: claim.basedOn, version: claim.version });
}

/** Keeps the old token for the next attempt. */
async function giveBackLease(
  { store, key, onStoreError }: RenewalContext,
  { current, basedOn, version }: Claim,
): Promise<void> {
  try {
    await store.set(key, heldRecord(current, basedOn), version);
  } catch (error) {
    // The lease expires by itself; the caller gets the first error.
    onStoreError(error);
  }
}

interface Save {
  readonly token: AnyAccessToken;
  /** Record of the store before. */
  readonly basedOn: VersionedRecord | undefined;
  /** The version to replace. */
  readonly version: string | undefined;
}

async function saveToken(context: RenewalContext, save: Save): Promise<Renewal> {
  const { store, key, sleep, onStoreError } = context;
  const { token } = save;
  let { version } = save;
  for (let attempt = 1; attempt <= saveAttempts; attempt += 1) {
    try {
      if ((await store.set(key, { token: token.toStored() }, version)).ok)
        return { token, unsaved: undefined };
      const entry = await store.get(key);
      const theirs = restoreToken(context, entry);
      const hasMoved = theirs !== undefined && theirs.token !== restoreToken(context, save.basedOn)?.token;
      // The process that took over has stored a newer token of the same grant, or this very token.
      if (theirs?.token === token.token || (hasMoved && isValid(theirs))) {
        return { token: theirs, unsaved: undefined };
      }
      version = entry?.version;
    } catch (error) {
      onStoreError(error);
      if (attempt < saveAttempts) await sleep(firstPollMs * 2 ** attempt);
    }
  }
  return { token, unsaved: { token, version } };
}

function isValid(token: AnyAccessToken): boolean {
  return token.token !== '' && !token.expired();
}

/** The store's token, or where it never had one the token to begin with. */
export function restoreToken(
  { client, seed, tokenOptions }: RenewalContext,
  entry: VersionedRecord | undefined,
): AnyAccessToken | undefined {
  const { token, revoked } = entry?.record ?? {};
  if (token !== undefined) return AccessToken.fromHash(client, token, tokenOptions);
  return revoked === true ? undefined : seed;
}

/** The record as it was, without any lease. */
function heldRecord(token: AnyAccessToken | undefined, entry: VersionedRecord | undefined): TokenRecord {
  if (token !== undefined) return { token: token.toStored() };
  return entry?.record.revoked === true ? { revoked: true } : {};
}

function leaseTimeout(waitedSeconds: number): TimeoutError {
  return new TimeoutError(
    `other processes have been renewing the token for ${Math.round(waitedSeconds)} s without an end`,
    { retryable: true },
  );
}

function requestTimeout(leaseSeconds: number, cause: unknown): TimeoutError {
  return new TimeoutError(
    `the token request took longer than ${requestShare * leaseSeconds} s, beyond which others may take over: raise \`leaseSeconds\` if the server needs longer`,
    { cause, retryable: true },
  );
}

/** When a token is renewed before it expires. */
export interface EarlyRenewal {
  /** Seconds before its expiry. */
  readonly earlySeconds: number;
  /** Up to so many seconds earlier still, by chance: not all processes come at once. */
  readonly jitterSeconds: number;
}

/**
 * The seconds before its expiry from which a token is renewed although it is valid; never in the
 * first half of the life it has left, so that short-lived tokens are not renewed at every call.
 * `random` is in [0, 1).
 */
export function renewBeforeSeconds(
  leftSeconds: number,
  { earlySeconds, jitterSeconds, random }: EarlyRenewal & { readonly random: number },
): number {
  return Math.min(earlySeconds + random * jitterSeconds, Math.max(0, leftSeconds) / 2);
}
