import { normalizeHost } from '@tollgate/policies/match/hosts';
import { errors } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { createClaims } from '../sessions/access-token.ts';
import type { SessionsContext } from '../sessions/context.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import { digestOf } from './cookies.ts';
import { openReturnAddress } from './return-address.ts';
import type { BrowserSessionStore } from './store.ts';

export type BrowserSessionsContext = SessionsContext & {
  readonly store: { readonly browserSessions: Pick<BrowserSessionStore, 'insert'> };
};

/** The path of an application's host that exchanges codes. */
export const callbackPath = '/.tollgate/callback';

/** The time for one redirect. */
const codeLifeMs = 60_000;
const codeBytes = 32;

/**
 * The URL at which a browser gets a cookie for the session of its user, with a code that is good
 * once, for the browser that asked for it. Undefined for an address that this server has not
 * written.
 *
 * @throws AppError `session_not_found`, and of the hook for access tokens
 */
export async function issueReturn(
  context: BrowserSessionsContext,
  { user, session, returnTo }: { readonly user: User; readonly session: Session; readonly returnTo: string },
  metadata: RequestMetadata,
): Promise<string | undefined> {
  const { store, random, settings } = context;
  const { nowMs } = metadata;
  const address = openReturnAddress(returnTo, { settings, nowMs });
  if (address === undefined || address.isExpired) return address?.url;
  const { origin, host } = new URL(address.url);
  const claims = await createClaims(context, { user, session, method: 'token_refresh' }, metadata);
  const code = random.bytes(codeBytes).toString('base64url');
  const isStored = await store.browserSessions.insert({
    id: random.uuid(),
    ...{ sessionId: session.id, userId: user.id, host: normalizeHost(host), binding: address.binding },
    code: digestOf(code),
    // A cookie of the application is for it.
    claims: { ...claims, aud: [claims.aud ?? [], origin].flat() },
    expiresAt: new Date(nowMs + codeLifeMs),
    at: new Date(nowMs),
  });
  if (!isStored) throw errors.session_not_found();
  return `${origin}${callbackPath}?${new URLSearchParams({ code, return_to: returnTo })}`;
}
