import type { Client } from '../client.ts';
import { OAuthError, TimeoutError, TokenUnavailableError } from '../errors.ts';
import type { WireParams } from '../http/options.ts';
import type { Sleep } from '../timers.ts';
import { AccessToken } from './access-token.ts';
import type { AccessTokenOptions, TokenFailure } from './options.ts';
import type { TokenRecord, TokenStore, VersionedRecord } from './token-store.ts';

/** How far two machines' clocks may be apart before one takes over a lease that the other still counts on. */
const clockToleranceSeconds = 60;

/** Judges, look after look, whether somebody else's lease still stands. */
export interface LeaseWatch {
  /** Whether to wait for the holder of the lease in this record. `waitedSeconds` is how long one has waited so far. */
  mustWait(entry: VersionedRecord | undefined, now: number, waitedSeconds: number): boolean;
}

/**
 * A lease is over when it has stood unchanged for as long as it lasts, by our own clock; so no two clocks need to agree. A
 * process that starts long after the holder died need not wait that long: the wall clock says so too, with a tolerance.
 */
export function createLeaseWatch(holder: string): LeaseWatch {
  let seen: { version: string; sinceSeconds: number } | undefined;
  return {
    mustWait(entry, now, waitedSeconds) {
      const lease = entry?.record.lease;
      if (entry === undefined || lease === undefined || lease.holder === holder) return false;
      if (seen?.version !== entry.version) seen = { version: entry.version, sinceSeconds: waitedSeconds };
      const watchedSeconds = waitedSeconds - seen.sinceSeconds;
      return watchedSeconds < lease.seconds && now <= lease.expiresAt + clockToleranceSeconds;
    },
  };
}

/** Gets a token from nothing: `({ signal }) => client.clientCredentials.getToken({}, { signal })`. */
export type AcquireToken = (options: { readonly signal: AbortSignal }) => Promise<AccessToken | TokenFailure>;

/** Where new tokens come from. */
interface TokenSource {
  readonly client: Client<boolean>;
  readonly acquire: AcquireToken | undefined;
  /** Sent with every refresh, `scope` or `resource` for example. */
  readonly refreshParams: WireParams;
}

/** A new token, or that the refresh token is good no more and there is no other way. */
type ObtainOutcome =
  | { readonly ok: true; readonly token: AccessToken }
  | { readonly ok: false; readonly error: OAuthError };

/**
 * Refreshes a token; `rejected` when the server does not take its refresh token (`invalid_grant`).
 *
 * @throws OAuthClientError for all other failures: the refresh token may still be good.
 */
async function refreshToken(
  { refreshParams }: TokenSource,
  token: AccessToken,
  signal: AbortSignal,
): Promise<ObtainOutcome> {
  try {
    return { ok: true, token: await token.refresh(refreshParams, { signal, throwOnError: true }) };
  } catch (error) {
    if (error instanceof OAuthError && error.code === 'invalid_grant') return { ok: false, error };
    throw error;
  }
}

/**
 * Gets a token without one.
 *
 * @throws TokenUnavailableError when there is no way to, with `because` as its cause; or what `acquire` throws.
 */
async function acquireToken(
  { acquire }: TokenSource,
  signal: AbortSignal,
  because: OAuthError | undefined,
): Promise<AccessToken> {
  if (acquire === undefined) {
    if (because !== undefined) throw because;
    throw new TokenUnavailableError(
      'there is no token and no refresh token: give the TokenManager a `token`, an `acquire`, or call `setToken`',
    );
  }
  const outcome = await acquire({ signal });
  if (!outcome.ok) throw outcome.error;
  return outcome;
}

/** What renewing needs. */
export interface RenewalDeps extends TokenSource {
  readonly store: TokenStore;
  readonly key: string;
  /** Used when the store holds nothing yet. */
  readonly seed: AccessToken | undefined;
  /** Options of tokens that come out of the store, where they cannot be kept (functions). */
  readonly tokenOptions: AccessTokenOptions;
  /** A random name of this manager. */
  readonly holder: string;
  readonly leaseSeconds: number;
  readonly sleep: Sleep;
  /** In [0, 1). */
  readonly random: () => number;
  /** Told of a store that cannot be written; the token is good all the same. */
  readonly onStoreError: (error: unknown) => void;
}

/** What the caller has in hand. */
export interface RenewalRequest {
  /** The token that the caller knows: one that differs and is valid will do. */
  readonly known: AccessToken | undefined;
  readonly unsaved: UnsavedToken | undefined;
  /** Ends waiting, never a request under way: its answer may be the only copy of a refresh token. */
  readonly signal: AbortSignal;
}

/** A token that could not be written to the store when it came. */
export interface UnsavedToken {
  readonly token: AccessToken;
  /** What the store held then; once it holds something else, others have moved on. */
  readonly version: string | undefined;
}

/** The token to use from now on, and whether the store still has to get it. */
export interface Renewal {
  readonly token: AccessToken;
  readonly unsaved: UnsavedToken | undefined;
}

/** First and longest pause between two looks at a lease; a refresh takes about as long. */
const firstPollMs = 25;
const longestPollMs = 500;

/** Writing a token that cost a refresh token is tried so often before it is only kept in memory. */
const saveAttempts = 3;

/** Nobody waits longer than this many leases: holders that die one after another are somebody else's trouble. */
const maxLeases = 3;

/** The part of a lease within which the request must be over, so that it ends before others take over. */
const requestShare = 0.8;

/**
 * Gives a valid token that is not the known one: from the store when another process put it there, or else by a refresh (or an
 * acquisition) that this process alone makes, since it holds the lease. On failure the store is left with the old token.
 *
 * @throws StoreError, TokenUnavailableError, TimeoutError, or whatever the token request throws.
 */
export async function renewToken(deps: RenewalDeps, request: RenewalRequest): Promise<Renewal> {
  const { store, key, holder, leaseSeconds, client, sleep, random } = deps;
  const watch = createLeaseWatch(holder);
  let waitedMs = 0;
  for (let looks = 0; ; looks += 1) {
    request.signal.throwIfAborted();
    const entry = await store.get(key);
    const unsaved = request.unsaved?.version === entry?.version ? request.unsaved?.token : undefined;
    const current = unsaved ?? restoreToken(deps, entry);
    if (current !== undefined && isValid(current) && current.token !== request.known?.token) {
      const isStored = unsaved === undefined && entry?.record.token !== undefined;
      if (isStored) return { token: current, unsaved: undefined };
      return saveToken(deps, { token: current, basedOn: entry, version: entry?.version });
    }
    const now = client.settings.now();
    if (watch.mustWait(entry, now, waitedMs / 1000)) {
      const pauseMs = Math.min(longestPollMs, firstPollMs * 2 ** looks) * (0.5 + random() / 2);
      if (waitedMs > maxLeases * leaseSeconds * 1000) throw leaseTimeout(waitedMs);
      await sleep(pauseMs, { signal: request.signal });
      waitedMs += pauseMs;
      continue;
    }
    const lease = { holder, seconds: leaseSeconds, expiresAt: now + leaseSeconds };
    const claim = await store.set(key, { ...heldRecord(current, entry), lease }, entry?.version);
    if (!claim.ok) continue;
    const renewal = await renewUnderLease(deps, { current, basedOn: entry, version: claim.version });
    if (renewal !== undefined) return renewal;
  }
}

interface Claim {
  readonly current: AccessToken | undefined;
  readonly basedOn: VersionedRecord | undefined;
  /** The version that holds our lease. */
  readonly version: string;
}

/** Undefined when another process was faster after all: look again. */
async function renewUnderLease(deps: RenewalDeps, claim: Claim): Promise<Renewal | undefined> {
  const { store, key, leaseSeconds } = deps;
  const signal = AbortSignal.timeout(Math.ceil(leaseSeconds * requestShare * 1000));
  let token: AccessToken;
  try {
    const { current } = claim;
    const refreshed =
      current?.refreshToken === undefined ? undefined : await refreshToken(deps, current, signal);
    if (refreshed?.ok === false && (await store.get(key))?.version !== claim.version) return undefined;
    token = refreshed?.ok === true ? refreshed.token : await acquireToken(deps, signal, refreshed?.error);
  } catch (error) {
    await giveBackLease(deps, claim);
    throw signal.aborted ? requestTimeout(leaseSeconds, error) : error;
  }
  return saveToken(deps, { token, basedOn: claim.basedOn, version: claim.version });
}

/** The old token stays, for the next one who tries. */
async function giveBackLease(
  { store, key, onStoreError }: RenewalDeps,
  { current, basedOn, version }: Claim,
): Promise<void> {
  try {
    await store.set(key, heldRecord(current, basedOn), version);
  } catch (error) {
    // The lease runs out by itself; the caller learns of the first error.
    onStoreError(error);
  }
}

interface Save {
  readonly token: AccessToken;
  /** What the store held when the token came of it. */
  readonly basedOn: VersionedRecord | undefined;
  /** The version to replace. */
  readonly version: string | undefined;
}

async function saveToken(deps: RenewalDeps, save: Save): Promise<Renewal> {
  const { store, key, sleep, onStoreError } = deps;
  const { token } = save;
  let { version } = save;
  for (let attempt = 1; attempt <= saveAttempts; attempt += 1) {
    try {
      if ((await store.set(key, { token: token.toStored() }, version)).ok)
        return { token, unsaved: undefined };
      const entry = await store.get(key);
      const theirs = restoreToken(deps, entry);
      const hasMoved = theirs !== undefined && theirs.token !== restoreToken(deps, save.basedOn)?.token;
      // Whoever took over has a newer one of the same grant, or has written the very same one.
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

function isValid(token: AccessToken): boolean {
  return token.token !== '' && !token.expired();
}

/** The store's token, or where it never had one the token to begin with. */
export function restoreToken(
  { client, seed, tokenOptions }: RenewalDeps,
  entry: VersionedRecord | undefined,
): AccessToken | undefined {
  const { token, revoked } = entry?.record ?? {};
  if (token !== undefined) return AccessToken.fromHash(client, token, tokenOptions);
  return revoked === true ? undefined : seed;
}

/** The record as it was, without any lease. */
function heldRecord(token: AccessToken | undefined, entry: VersionedRecord | undefined): TokenRecord {
  if (token !== undefined) return { token: token.toStored() };
  return entry?.record.revoked === true ? { revoked: true } : {};
}

function leaseTimeout(waitedMs: number): TimeoutError {
  return new TimeoutError(
    `other processes have been renewing the token for ${Math.round(waitedMs)} ms without an end`,
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
 * The moment (epoch seconds) from which a token is renewed although it is valid; never in the first half of the life it has
 * left, so that short-lived tokens are not renewed at every call. `random` is in [0, 1). Infinity for tokens that do not expire.
 */
export function renewalTime(
  expiresAt: number | undefined,
  now: number,
  { earlySeconds, jitterSeconds, random }: EarlyRenewal & { readonly random: number },
): number {
  if (expiresAt === undefined) return Number.POSITIVE_INFINITY;
  const leftSeconds = Math.max(0, expiresAt - now);
  return expiresAt - Math.min(earlySeconds + random * jitterSeconds, leftSeconds / 2);
}
