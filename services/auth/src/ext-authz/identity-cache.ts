import { createRecentlyUsed } from '@tollgate/kit/collections';
import { inTime } from '@tollgate/kit/time';
import { errors } from '../errors.ts';
import { isUuid } from '../http/api.ts';
import type { JsonObject } from '../users/user-json.ts';
import { createInvalidations, type Mark } from './identity-listener.ts';
import type { ChangedIdentities, IdentityKey, IdentityStateStore } from './store.ts';

/** What may have changed since an access token was issued. */
export interface IdentityState {
  readonly role: string;
  readonly appMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly bannedUntil: Date | undefined;
  /** Absent when the session has ended, or none was asked for. */
  readonly session: { readonly createdAt: Date; readonly notAfter: Date | undefined } | undefined;
}

/** Tells the state of users and sessions, no older than the bound that its maker was given. */
export interface IdentityStates {
  /**
   * At once where it is known, so that most checks wait for nothing. Undefined: there is no such user (any more).
   * Rejects when nobody can tell: the database does not answer and what is known is too old.
   */
  find(
    userId: string,
    sessionId: string | undefined,
  ): IdentityState | undefined | Promise<IdentityState | undefined>;
}

/** A question, and its answer once it is there. `S` is what was noted when it was sent. */
interface Read<S> {
  /** Absent until the question is sent. */
  readonly sent: S | undefined;
  readonly state: Promise<IdentityState | undefined>;
}

/** Asks for many states at once. */
export interface BatchedReads<S> {
  /** Throws `authorization_unavailable` when too many wait already. */
  begin(key: IdentityKey): Read<S>;
}

/** What that takes. */
export interface BatchedReadsDeps<S> {
  readonly store: Pick<IdentityStateStore, 'findMany'>;
  /** Called for each question at the moment when it is sent. */
  readonly note: (key: IdentityKey) => S;
  /** How long an answer may take. Default {@link defaultAnswerTimeoutMs}. */
  readonly answerTimeoutMs?: number;
}

/** One statement answers them in a few milliseconds; more would make the others wait. */
const maxBatch = 500;
/** Connections that checks may take from requests of the API, which share the pool. */
const maxBatchesUnderWay = 4;
/** As many users as are kept by default. Who comes after them would wait longer than a proxy does. */
const maxWaiting = 10_000;
/** Whoever waits says how long; an answer that comes later than that is there for the next request. */
const defaultAnswerTimeoutMs = 3_000;

interface Waiting<S> {
  readonly key: IdentityKey;
  readonly answer: PromiseWithResolvers<IdentityState | undefined>;
  sent: S | undefined;
}

/**
 * Creates {@link BatchedReads}: what is asked for in one turn of the event loop, or while as many statements are under way as may be, is
 * one statement.
 */
export function createBatchedReads<S>(deps: BatchedReadsDeps<S>): BatchedReads<S> {
  const { store, note, answerTimeoutMs = defaultAnswerTimeoutMs } = deps;
  const waiting: Waiting<S>[] = [];
  let underWay = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || underWay >= maxBatchesUnderWay) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void send(waiting.splice(0, maxBatch));
      schedule();
    });
  }

  /** Never rejects: each question is told. */
  async function send(batch: readonly Waiting<S>[]): Promise<void> {
    underWay += 1;
    try {
      for (const read of batch) read.sent = note(read.key);
      const states = await inTime(store.findMany(batch.map(({ key }) => key)), answerTimeoutMs, () =>
        errors.authorization_unavailable({ detail: 'the database did not answer in time' }),
      );
      batch.forEach(({ answer }, index) => {
        answer.resolve(states[index]);
      });
    } catch (error) {
      for (const { answer } of batch) answer.reject(error);
    } finally {
      underWay -= 1;
      schedule();
    }
  }

  return {
    begin(key) {
      if (waiting.length >= maxWaiting)
        throw errors.authorization_unavailable({ detail: 'too many users wait for the database' });
      const read: Waiting<S> = { key, answer: Promise.withResolvers(), sent: undefined };
      waiting.push(read);
      schedule();
      return {
        get sent() {
          return read.sent;
        },
        state: read.answer.promise,
      };
    },
  };
}

/** States of users who are there at the moment, kept for a short while. */
export interface KnownIdentityStates extends IdentityStates {
  /** From now on the state of those is asked for again. */
  invalidate(changed: ChangedIdentities): void;
  stats(): IdentityStatesStats;
}

/** What has happened so far. */
export interface IdentityStatesStats {
  /** Answered at once. */
  readonly hits: number;
  /** Asked for. */
  readonly misses: number;
  /** Waited for an answer that somebody else had asked for. */
  readonly joins: number;
  /** Users that changed. */
  readonly invalidations: number;
  /** Times that all users might have changed. */
  readonly invalidationsOfAll: number;
  /** States held at the moment, fresh or not. */
  readonly entries: number;
}

/** How much is kept, and for how long. */
export interface IdentityStatesOptions {
  /** No answer is older; 0 asks every time. */
  readonly maxStalenessMs: number;
  /** Most states that are kept. Default 10,000. */
  readonly capacity?: number;
}

/** What that takes. */
export interface IdentityStatesDeps {
  readonly store: Pick<IdentityStateStore, 'findMany'>;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}

/** As many users as are there in the seconds for which a state is good; about 10 MB, at a kilobyte each. */
const defaultCapacity = 10_000;
/** Of users whom there is not: one may be made under an id that was given before. */
const longestUnknownMs = 1_000;

/** What was known at a moment; an answer is as old as its question. */
interface Asked {
  readonly atMs: number;
  readonly mark: Mark;
}

/** Whom it is about, as the token names them. */
interface Asker {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

interface Entry extends Asker {
  readonly asked: Asked;
  readonly state: IdentityState | undefined;
}

interface Reading extends Asker {
  readonly read: Read<Asked>;
}

/**
 * Creates {@link KnownIdentityStates} that know nobody yet. A user is asked for once, however many requests of theirs arrive in the
 * meantime, and again when they have changed or what is known is too old.
 */
export function createIdentityStates(
  { store, nowMs }: IdentityStatesDeps,
  { maxStalenessMs, capacity = defaultCapacity }: IdentityStatesOptions,
): KnownIdentityStates {
  const invalidations = createInvalidations();
  // By the session, or else the user: both in one key would have to be put together with every request.
  const entries = createRecentlyUsed<Entry>({ capacity });
  const reading = new Map<string, Reading>();
  const reads = createBatchedReads<Asked>({
    store,
    note: ({ userId }) => ({ atMs: nowMs(), mark: invalidations.markOf(userId) }),
  });
  const counts = { hits: 0, misses: 0, joins: 0, invalidations: 0, invalidationsOfAll: 0 };

  function isFresh({ atMs, mark }: Asked, maxAgeMs: number): boolean {
    const ageMs = nowMs() - atMs;
    // Below zero: somebody has set the clock back, and nobody can tell how old it is.
    return ageMs >= 0 && ageMs < maxAgeMs && invalidations.isCurrent(mark);
  }

  function isUsable({ asked, state }: Entry): boolean {
    return isFresh(asked, state === undefined ? Math.min(longestUnknownMs, maxStalenessMs) : maxStalenessMs);
  }

  function isJoinable({ read: { sent } }: Reading): boolean {
    return sent === undefined || isFresh(sent, maxStalenessMs);
  }

  /** Somebody else may have named the same session, which is not theirs. */
  function isAbout(asker: Asker, userId: string, sessionId: string | undefined): boolean {
    return asker.userId === userId && asker.sessionId === sessionId;
  }

  async function read(name: string, asker: Asker, key: IdentityKey): Promise<IdentityState | undefined> {
    counts.misses += 1;
    const begun: Reading = { ...asker, read: reads.begin(key) };
    reading.set(name, begun);
    try {
      const state = await begun.read.state;
      const asked = begun.read.sent;
      // Unless somebody has asked again, who knows better.
      if (reading.get(name) === begun && asked !== undefined) entries.set(name, { ...asker, asked, state });
      return state;
    } finally {
      if (reading.get(name) === begun) reading.delete(name);
    }
  }

  return {
    find(userId, sessionId) {
      const name = sessionId ?? userId;
      const known = entries.get(name);
      if (known !== undefined && isAbout(known, userId, sessionId) && isUsable(known)) {
        counts.hits += 1;
        return known.state;
      }
      const underWay = reading.get(name);
      if (underWay !== undefined && isAbout(underWay, userId, sessionId) && isJoinable(underWay)) {
        counts.joins += 1;
        return underWay.read.state;
      }
      const key = keyOf(userId, sessionId);
      return key && read(name, { userId, sessionId }, key);
    },
    invalidate(changed) {
      if (changed === 'all') counts.invalidationsOfAll += 1;
      else counts.invalidations += changed.length;
      invalidations.invalidate(changed);
    },
    stats: () => ({ ...counts, entries: entries.size() }),
  };
}

/** One id that is none would fail the statement of all others. There is no such user; and no such session of the user. */
function keyOf(userId: string, sessionId: string | undefined): IdentityKey | undefined {
  if (!isUuid(userId)) return undefined;
  const isSession = sessionId !== undefined && isUuid(sessionId);
  return { userId: userId.toLowerCase(), sessionId: isSession ? sessionId.toLowerCase() : undefined };
}
