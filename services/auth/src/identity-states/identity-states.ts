import { createRecentlyUsed } from '@tollgate/kit/recently-used';
import { isUuid } from '../domain/uuid.ts';
import type { ChangedIdentities, IdentityKey, IdentityStateStore } from '../ports/identity-state-store.ts';
import type { IdentityState, IdentityStates } from '../ports/identity-states.ts';
import { createBatchedReads, type Read } from './batched-reads.ts';
import { createInvalidations, type Mark } from './invalidations.ts';

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
  readonly store: IdentityStateStore;
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
