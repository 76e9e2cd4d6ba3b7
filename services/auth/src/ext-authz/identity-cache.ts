import { RecentlyUsed } from '@tollgate/kit/collections';
import type { JsonObject } from '@tollgate/kit/json';
import { isUuid } from '@tollgate/kit/text';
import { type Queryable, toObject } from '../db/connection.ts';
import { batchedInput, column } from '../db/fragments.ts';
import { boolean, json, text, timestamptz, uuid } from '../db/sql-types.ts';
import {
  type ChangedIds,
  defaultCapacity,
  type Reading,
  type ReadTime,
  type StateCacheOptions,
  StateReads,
  toBucket,
} from '../db/state-reads.ts';
import { type StatementRow, statement } from '../db/statement.ts';

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

export type IdentityCacheOptions<State> = StateCacheOptions<{
  /** Returns states in the order of the keys. */
  findMany(keys: readonly IdentityKey[]): Promise<readonly (State | undefined)[]>;
}>;

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
  readonly bucket: number;
  readonly state: State | undefined;
}

/** The ids of a token, and the key of its read. */
interface Lookup extends Subject {
  readonly key: IdentityKey;
  readonly bucket: number;
}

/**
 * Caches the state of users and sessions, or of clients, whose ids take the place of those of
 * users. Concurrent lookups of a user share one read; a user is read again after a change, or when
 * the cached state is too old.
 */
export class IdentityCache<State = IdentityState> {
  // Keyed by session, or else by user: joining both would cost a string per request. Tokens of a
  // session with several organizations have an entry each.
  readonly #entries;
  readonly #reads: StateReads<Lookup, State>;
  readonly #counts = { hits: 0, misses: 0, joins: 0, invalidations: 0, invalidationsOfAll: 0 };

  constructor({ store, capacity = defaultCapacity, ...options }: IdentityCacheOptions<State>) {
    this.#entries = new RecentlyUsed<Entry<State>>({ capacity });
    this.#reads = new StateReads({
      ...options,
      findMany: (lookups) => store.findMany(lookups.map(({ key }) => key)),
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
    const reading = this.#reads.pending(name);
    if (reading !== undefined && isAbout(reading.key, subject) && this.#isJoinable(reading)) {
      this.#counts.joins += 1;
      return reading.state;
    }
    const key = toKey(subject);
    return key && this.#read(name, { ...subject, key, bucket: toBucket(key.userId) });
  }

  invalidate(changed: ChangedIds): void {
    if (changed === 'all') this.#counts.invalidationsOfAll += 1;
    else this.#counts.invalidations += changed.length;
    this.#reads.invalidate(changed);
  }

  stats(): IdentityCacheStats {
    return { ...this.#counts, entries: this.#entries.size };
  }

  #read(name: string, { key, ...entry }: Lookup): Promise<State | undefined> {
    this.#counts.misses += 1;
    return this.#reads.read(name, { key, ...entry }, (state, readTime) =>
      this.#entries.set(name, { ...entry, readTime, state }),
    );
  }

  #isUsable({ readTime, bucket, state }: Entry<State>): boolean {
    const { atMs } = readTime;
    const isYoung = state === undefined ? this.#reads.isYoungMiss(atMs) : this.#reads.isYoung(atMs);
    return isYoung && this.#reads.isCurrent(readTime, bucket);
  }

  #isJoinable({ readTime, key }: Reading<Lookup, State>): boolean {
    if (readTime === undefined) return true;
    return this.#reads.isYoung(readTime.atMs) && this.#reads.isCurrent(readTime, key.bucket);
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
  readonly slug: string;
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
const organizationState = {
  org_id: uuid,
  org_slug: text,
  org_role: text,
  org_plan: text.orNull,
  org_limit: json.orNull,
};

const findStates = statement({}, userState, sessionState, organizationState)`
  select u.role, u.raw_app_meta_data, u.is_anonymous, u.banned_until, s.id as session_id, s.created_at, s.not_after,
    o.org_id, o.org_slug, o.org_role, o.org_plan, o.org_limit
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
    select o.id as org_id, o.slug as org_slug, m.role as org_role, o.plan as org_plan, o.rate_limit as org_limit
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
  const { org_id: id, org_slug: slug, org_role: role, org_plan: plan, org_limit: limit } = r;
  return { id, slug, role, plan: plan ?? undefined, limit: limit === null ? undefined : toObject(limit) };
}
