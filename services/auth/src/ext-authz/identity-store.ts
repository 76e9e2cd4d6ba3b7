import { inTime } from '@tollgate/kit/time';
import { type Queryable, query, type Row } from '../db/query.ts';
import { errors } from '../errors.ts';
import type { JsonObject } from '../users/user-json.ts';

/** What may have changed since an access token was issued. */
export interface IdentityState {
  readonly role: string;
  readonly appMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly bannedUntil: Date | undefined;
  /** Undefined if the session has ended, or the key has none. */
  readonly session: { readonly createdAt: Date; readonly notAfter: Date | undefined } | undefined;
}

export interface IdentityKey {
  /** A UUID in lower case. */
  readonly userId: string;
  /** A UUID in lower case. Undefined for a token without a session. */
  readonly sessionId: string | undefined;
}

// A generic plan that was made when the tables were small would scan them. `offset 0` makes
// PostgreSQL look up each row by its primary key; for the same reason sessions are not joined by
// user.
const findStates = `
  select u.role, u.raw_app_meta_data, u.is_anonymous, u.banned_until, s.id as session_id, s.created_at, s.not_after
  from unnest($1::uuid[], $2::uuid[]) with ordinality as k(user_id, session_id, position)
  left join lateral (
    select role, raw_app_meta_data, is_anonymous, banned_until from users
    where id = k.user_id and deleted_at is null offset 0
  ) u on true
  left join lateral (
    select id, created_at, not_after from sessions
    where id = k.session_id and user_id is not distinct from k.user_id offset 0
  ) s on true
  order by k.position`;

interface StateRow {
  readonly role: string | null;
  readonly raw_app_meta_data: JsonObject | null;
  /** Null if there is no user: the column is not nullable. */
  readonly is_anonymous: boolean | null;
  readonly banned_until: Date | null;
  readonly session_id: string | null;
  readonly created_at: Date | null;
  readonly not_after: Date | null;
}

export class IdentityStateStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Reads states in the order of the keys with one statement. Undefined: no such user. */
  async findMany(keys: readonly IdentityKey[]): Promise<readonly (IdentityState | undefined)[]> {
    const userIds = keys.map(({ userId }) => userId);
    const sessionIds = keys.map(({ sessionId }) => sessionId ?? null);
    return (await query(this.#sql, findStates, [userIds, sessionIds])).map(toState);
  }
}

function toState(row: Row): IdentityState | undefined {
  // Parsed boundary: these are the columns selected above, with the types of the schema.
  const r = row as unknown as StateRow;
  if (r.is_anonymous === null) return undefined;
  return {
    role: r.role ?? '',
    appMetadata: r.raw_app_meta_data ?? {},
    isAnonymous: r.is_anonymous,
    bannedUntil: r.banned_until ?? undefined,
    session:
      r.session_id === null
        ? undefined
        : { createdAt: r.created_at ?? new Date(0), notAfter: r.not_after ?? undefined },
  };
}

/** A read of one state. */
export interface PendingRead<S> {
  /** What `onSend` returned. Undefined until the statement is sent. */
  sent: S | undefined;
  readonly state: Promise<IdentityState | undefined>;
}

export interface BatchedReaderOptions<S> {
  readonly store: Pick<IdentityStateStore, 'findMany'>;
  /** Called for each key when its statement is sent. */
  readonly onSend: (key: IdentityKey) => S;
  /** Limit of a statement. */
  readonly timeoutMs?: number;
}

interface QueuedRead<S> {
  readonly key: IdentityKey;
  readonly result: PromiseWithResolvers<IdentityState | undefined>;
  readonly read: PendingRead<S>;
}

/** Read by one statement in a few milliseconds. */
const maxBatchSize = 500;
/** Connections that checks may use of the pool, which they share with the API. */
const maxConcurrentBatches = 4;
/** Further reads would wait longer than proxies do. */
const maxQueuedReads = 10_000;
/** Callers have timeouts of their own; a late result is cached for the next request. */
const defaultTimeoutMs = 3_000;

/**
 * Reads many states with one statement: those requested in the same turn of the event loop, or
 * while the maximum number of statements is in flight.
 */
export class BatchedReader<S> {
  readonly #options: BatchedReaderOptions<S>;
  readonly #queue: QueuedRead<S>[] = [];
  #inFlight = 0;
  #isScheduled = false;

  constructor(options: BatchedReaderOptions<S>) {
    this.#options = options;
  }

  /** @throws AppError `authorization_unavailable` if too many reads are queued. */
  read(key: IdentityKey): PendingRead<S> {
    if (this.#queue.length >= maxQueuedReads)
      throw errors.authorization_unavailable({ detail: 'too many reads are waiting for the database' });
    const result = Promise.withResolvers<IdentityState | undefined>();
    const read: PendingRead<S> = { sent: undefined, state: result.promise };
    this.#queue.push({ key, result, read });
    this.#schedule();
    return read;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.length === 0 || this.#inFlight >= maxConcurrentBatches) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send(this.#queue.splice(0, maxBatchSize));
      this.#schedule();
    });
  }

  /** Never rejects: errors reject the reads of the batch. */
  async #send(batch: readonly QueuedRead<S>[]): Promise<void> {
    const { store, onSend, timeoutMs = defaultTimeoutMs } = this.#options;
    this.#inFlight += 1;
    try {
      for (const { key, read } of batch) read.sent = onSend(key);
      const states = await inTime(store.findMany(batch.map(({ key }) => key)), timeoutMs, () =>
        errors.authorization_unavailable({ detail: 'the database did not respond in time' }),
      );
      for (const [index, { result }] of batch.entries()) result.resolve(states[index]);
    } catch (error) {
      for (const { result } of batch) result.reject(error);
    } finally {
      this.#inFlight -= 1;
      this.#schedule();
    }
  }
}
