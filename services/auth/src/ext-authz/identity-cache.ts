import { RecentlyUsed } from '@tollgate/kit/collections';
import type { JsonObject } from '@tollgate/kit/json';
import { isUuid } from '@tollgate/kit/text';
import { inTime } from '@tollgate/kit/time';
import { Batch, type Queryable, toObject } from '../db/connection.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { boolean, json, text, timestamptz, uuid } from '../db/sql-types.ts';
import { type StatementRow, statement } from '../db/statement.ts';
import { errors } from '../errors.ts';

/** Ids of users and clients (UUIDs in lower case) that may have changed, or all of them. */
export type ChangedUsers = readonly string[] | 'all';

export interface IdentityCacheStats {
  readonly hits: number;
  readonly misses: number;
  /** Requests that joined a read in flight. */
  readonly joins: number;
  /** Invalidated users. */
  readonly invalidations: number;
  /** Invalidations of all users. */
  readonly invalidationsOfAll: number;
  /** Cached states, fresh or stale. */
  readonly entries: number;
}

export interface IdentityCacheOptions<State> {
  /** Returns states in the order of the keys. */
  readonly store: { findMany(keys: readonly IdentityKey[]): Promise<readonly (State | undefined)[]> };
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  /** Maximum age of a result; 0 reads each time. */
  readonly maxStalenessMs: number;
  /** Maximum number of entries. */
  readonly capacity?: number;
  /** Limit of a lookup. */
  readonly timeoutMs?: number;
}

/** About 10 MB, at a kilobyte each. */
const defaultCapacity = 10_000;
/** Connections that checks may use of the pool, which they share with the API. */
const maxConcurrentReads = 4;
/** Callers have timeouts of their own; a late result is cached for the next request. */
const defaultTimeoutMs = 3_000;
/** A user may be created with an id that was looked up before. */
const negativeTtlMs = 1_000;

/** When a read was sent. A result is as old as its read. */
interface ReadTime {
  readonly atMs: number;
  readonly version: UserVersion;
}

/** The ids of a token. */
interface Subject {
  readonly userId: string;
  /** Undefined for a token without a session. */
  readonly sessionId: string | undefined;
  /** The active organization. */
  readonly orgId?: string | undefined;
}

interface Entry<State> extends Subject {
  readonly readTime: ReadTime;
  readonly state: State | undefined;
}

/** A queued or sent read. */
interface Reading<State> extends Subject {
  readonly key: IdentityKey;
  /** Undefined until the statement is sent. */
  readTime: ReadTime | undefined;
  state: Promise<State | undefined> | undefined;
}

/**
 * Caches the state of users and sessions, or of clients, whose ids take the place of those of
 * users. Concurrent lookups of a user share one read; a user is
 * read again after a change, or when the cached state is too old.
 */
export class IdentityCache<State = IdentityState> {
  readonly #nowMs: () => number;
  readonly #maxStalenessMs: number;
  readonly #versions = new UserVersions();
  // Keyed by session, or else by user: joining both would cost a string per request. Tokens of a
  // session with several organizations have an entry each.
  readonly #entries;
  readonly #reading = new Map<string, Reading<State>>();
  readonly #reads: Batch<Reading<State>, State | undefined>;
  readonly #counts = { hits: 0, misses: 0, joins: 0, invalidations: 0, invalidationsOfAll: 0 };

  constructor({
    store,
    nowMs,
    maxStalenessMs,
    capacity = defaultCapacity,
    timeoutMs = defaultTimeoutMs,
  }: IdentityCacheOptions<State>) {
    this.#nowMs = nowMs;
    this.#maxStalenessMs = maxStalenessMs;
    this.#entries = new RecentlyUsed<Entry<State>>({ capacity });
    const late = () => errors.authorization_unavailable({ detail: 'the database did not respond in time' });
    this.#reads = new Batch({
      maxConcurrent: maxConcurrentReads,
      // Includes the wait for one of these reads, each of which may take as long.
      deadline: { timeoutMs, late },
      run: (readings) => {
        for (const reading of readings)
          reading.readTime = { atMs: nowMs(), version: this.#versions.get(reading.key.userId) };
        return inTime(store.findMany(readings.map(({ key }) => key)), timeoutMs, late);
      },
    });
  }

  /**
   * Returns the state, or a promise if it must be read. Undefined: there is no such user. Rejects
   * if the database is unavailable and the cached state is too old.
   */
  find(
    userId: string,
    sessionId: string | undefined,
    orgId?: string,
  ): State | undefined | Promise<State | undefined> {
    const subject = { userId, sessionId, orgId };
    const name = orgId === undefined ? (sessionId ?? userId) : `${sessionId ?? userId} ${orgId}`;
    const entry = this.#entries.get(name);
    if (entry !== undefined && isAbout(entry, subject) && this.#isUsable(entry)) {
      this.#counts.hits += 1;
      return entry.state;
    }
    const reading = this.#reading.get(name);
    if (reading !== undefined && isAbout(reading, subject) && this.#isJoinable(reading)) {
      this.#counts.joins += 1;
      return reading.state;
    }
    const key = toKey(subject);
    return key && this.#read(name, subject, key);
  }

  invalidate(changed: ChangedUsers): void {
    if (changed === 'all') this.#counts.invalidationsOfAll += 1;
    else this.#counts.invalidations += changed.length;
    this.#versions.increment(changed);
  }

  stats(): IdentityCacheStats {
    return { ...this.#counts, entries: this.#entries.size };
  }

  async #read(name: string, subject: Subject, key: IdentityKey): Promise<State | undefined> {
    this.#counts.misses += 1;
    const reading: Reading<State> = { ...subject, key, readTime: undefined, state: undefined };
    reading.state = this.#reads.add(reading);
    this.#reading.set(name, reading);
    try {
      const state = await reading.state;
      const { readTime } = reading;
      // A newer read has replaced this one otherwise.
      if (this.#reading.get(name) === reading && readTime !== undefined)
        this.#entries.set(name, { ...subject, readTime, state });
      return state;
    } finally {
      if (this.#reading.get(name) === reading) this.#reading.delete(name);
    }
  }

  #isUsable({ readTime, state }: Entry<State>): boolean {
    const maxAgeMs = this.#maxStalenessMs;
    return this.#isFresh(readTime, state === undefined ? Math.min(negativeTtlMs, maxAgeMs) : maxAgeMs);
  }

  #isJoinable({ readTime }: Reading<State>): boolean {
    return readTime === undefined || this.#isFresh(readTime, this.#maxStalenessMs);
  }

  #isFresh({ atMs, version }: ReadTime, maxAgeMs: number): boolean {
    const ageMs = this.#nowMs() - atMs;
    // A negative age means that the clock was set back.
    return ageMs >= 0 && ageMs < maxAgeMs && this.#versions.isCurrent(version);
  }
}

/** Another user's token may name the same session, which is not theirs. */
function isAbout(cached: Subject, { userId, sessionId, orgId }: Subject): boolean {
  return cached.userId === userId && cached.sessionId === sessionId && cached.orgId === orgId;
}

/** An invalid UUID would fail the statement of the whole batch, and identifies nothing. */
function toKey({ userId, sessionId, orgId }: Subject): IdentityKey | undefined {
  if (!isUuid(userId)) return undefined;
  return { userId: userId.toLowerCase(), sessionId: toUuid(sessionId), orgId: toUuid(orgId) };
}

function toUuid(id: string | undefined): string | undefined {
  return id !== undefined && isUuid(id) ? id.toLowerCase() : undefined;
}

interface UserVersion {
  readonly bucket: number;
  readonly changes: number;
}

/**
 * The last three digits of a UUID, which are random in all common versions. 1 in 4,096 users share
 * a bucket.
 */
const bucketDigits = 3;
const bucketCount = 16 ** bucketDigits;

/** Counts changes of users in a fixed number of buckets, independent of what is cached. */
class UserVersions {
  readonly #changes = new Float64Array(bucketCount);

  /** Must be read before a statement is sent: its result may be older than a concurrent change. */
  get(userId: string): UserVersion {
    const bucket = toBucket(userId);
    return { bucket, changes: this.#changes[bucket] ?? 0 };
  }

  isCurrent({ bucket, changes }: UserVersion): boolean {
    return this.#changes[bucket] === changes;
  }

  increment(changed: ChangedUsers): void {
    const buckets = changed === 'all' ? this.#changes.keys() : changed.map(toBucket);
    for (const bucket of buckets) this.#changes[bucket] = (this.#changes[bucket] ?? 0) + 1;
  }
}

function toBucket(userId: string): number {
  return Number.parseInt(userId.slice(-bucketDigits), 16);
}

/** Data that may have changed since an access token was issued. */
export interface IdentityState {
  readonly role: string;
  readonly appMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly bannedUntil: Date | undefined;
  /** Undefined if the session has ended, or the key has none. */
  readonly session: { readonly createdAt: Date; readonly notAfter: Date | undefined } | undefined;
  /** Undefined if the key has none, or the user is no member. */
  readonly organization: OrganizationState | undefined;
}

/** An organization as a member sees it. */
interface OrganizationState {
  readonly id: string;
  /** The role of the member. */
  readonly role: string;
  readonly plan: string | undefined;
  /** `{ requests_per_unit, unit }`, not validated. */
  readonly limit: JsonObject | undefined;
}

/** A {@link Subject} of UUIDs in lower case. */
export interface IdentityKey extends Subject {}

// See `batchedInput` for `offset 0`.
const userState = {
  role: text.orNull,
  raw_app_meta_data: json.orNull,
  is_anonymous: boolean,
  banned_until: timestamptz.orNull,
};
const sessionState = { session_id: uuid, created_at: timestamptz.orNull, not_after: timestamptz.orNull };
const organizationState = { org_id: uuid, org_role: text, org_plan: text.orNull, org_limit: json.orNull };

const findStates = statement({}, userState, sessionState, organizationState)`
  select u.role, u.raw_app_meta_data, u.is_anonymous, u.banned_until, s.id as session_id, s.created_at, s.not_after,
    o.org_id, o.org_role, o.org_plan, o.org_limit
  from ${batchedInput<IdentityKey>({
    user_id: column(uuid, ({ userId }) => userId),
    session_id: column(uuid.orNull, ({ sessionId }) => sessionId ?? null),
    org_id: column(uuid.orNull, ({ orgId }) => orgId ?? null),
  })}
  left join lateral (
    select role, raw_app_meta_data, is_anonymous, banned_until from users
    where id = i.user_id and deleted_at is null offset 0
  ) u on true
  left join lateral (
    select id, created_at, not_after from sessions
    where id = i.session_id and user_id is not distinct from i.user_id offset 0
  ) s on true
  left join lateral (
    select o.id as org_id, m.role as org_role, o.plan as org_plan, o.rate_limit as org_limit
    from organization_members m join organizations o on o.id = m.organization_id
    where m.organization_id = i.org_id and m.user_id = i.user_id offset 0
  ) o on true
  order by i.position`;

export class IdentityStateStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Reads states in the order of the keys with one statement. Undefined: no such user. */
  async findMany(keys: readonly IdentityKey[]): Promise<readonly (IdentityState | undefined)[]> {
    return (await findStates.run(this.#sql, { items: keys })).map(toState);
  }
}

function toState(r: StatementRow<typeof findStates>): IdentityState | undefined {
  if (r.is_anonymous === null) return undefined;
  return {
    role: r.role ?? '',
    appMetadata: toObject(r.raw_app_meta_data),
    isAnonymous: r.is_anonymous,
    bannedUntil: r.banned_until ?? undefined,
    session:
      r.session_id === null
        ? undefined
        : { createdAt: r.created_at ?? new Date(0), notAfter: r.not_after ?? undefined },
    organization: toOrganization(r),
  };
}

function toOrganization(r: StatementRow<typeof findStates>): OrganizationState | undefined {
  if (r.org_id === null) return undefined;
  const { org_id: id, org_role: role, org_plan: plan, org_limit: limit } = r;
  return { id, role, plan: plan ?? undefined, limit: limit === null ? undefined : toObject(limit) };
}
