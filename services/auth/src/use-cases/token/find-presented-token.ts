import { isRefreshToken, type RefreshToken, type Successor } from '../../domain/refresh-token.ts';
import { errors } from '../../errors.ts';
import type { RefreshableSession, StoredRefreshToken } from '../../ports/session-store.ts';
import type { DepsWith } from '../../services.ts';
import { type CounterToken, makeCounterToken, readCounterToken } from '../../tokens/counter-token.ts';

/** A refresh token that a client presented, and what it is for. */
export interface PresentedToken extends RefreshableSession {
  readonly text: string;
  readonly token: RefreshToken;
}

/** Finds what a refresh token is for, in one statement. @throws AppError `refresh_token_not_found` */
export type FindPresentedToken = (text: string) => Promise<PresentedToken>;

/** Creates {@link FindPresentedToken}: the form of the text tells whether it is one that is kept. */
export function createFindPresentedToken({ store }: DepsWith<'store', never>): FindPresentedToken {
  return async (text) => {
    const read = readCounterToken(text);
    const found = read === undefined ? await findKept(text) : await findCounted(read);
    if (found === undefined) throw errors.refresh_token_not_found();
    return { ...found, text };
  };

  async function findKept(text: string): Promise<Omit<PresentedToken, 'text'> | undefined> {
    if (!isRefreshToken(text)) return undefined;
    const found = await store.sessions.findByRefreshToken(text);
    return found && { ...found, token: { ...found.token, successor: successorOf(found.token, found) } };
  }

  async function findCounted(read: CounterToken): Promise<Omit<PresentedToken, 'text'> | undefined> {
    const found = await store.sessions.findForRefresh(read.sessionId);
    if (found?.refreshCounter === undefined) return undefined;
    const { session, refreshCounter } = found;
    // Ahead of the database are tokens that it has forgotten: it was restored from a backup.
    const behind = refreshCounter.counter - read.counter;
    if (!read.isSignedWith(refreshCounter.hmacKey) || behind < 0) return undefined;
    const token = {
      revoked: behind > 0,
      updatedAt: session.refreshedAt ?? session.createdAt,
      successor: behind > 0 ? counted(found, behind === 1) : undefined,
    };
    return { ...found, token };
  }
}

/** The successor of a token that is kept: kept itself, or the one that is good now in a session that has changed over. */
function successorOf(
  { activeChild, hasChild }: StoredRefreshToken,
  found: RefreshableSession,
): Successor | undefined {
  if (activeChild !== undefined) return { token: activeChild, isNext: true };
  return counted(found, !hasChild && found.refreshCounter?.counter === 0);
}

function counted({ session, refreshCounter }: RefreshableSession, isNext: boolean): Successor | undefined {
  if (refreshCounter === undefined) return undefined;
  const { counter, hmacKey } = refreshCounter;
  return { token: makeCounterToken({ sessionId: session.id, counter }, hmacKey), isNext };
}
