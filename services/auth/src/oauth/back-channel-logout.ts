import { issuerUrl, signJwt } from '../keys/jwt.ts';
import { FetchRejected, postText } from '../outbound/fetch.ts';
import type { OAuthContext } from './clients.ts';
import { clientIdentifier } from './find-client.ts';

const lifetimeSeconds = 120;
const timeoutMs = 10_000;
/** The member of `events` that makes a JWT a logout token. */
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';

/** A session of a client that has ended. */
export interface EndedSession {
  /** The id of the row of the client. */
  readonly clientId: string;
  readonly userId: string;
  readonly sessionId: string;
}

/**
 * Tells a client that its session has ended. A client that has been deleted, or has no URI any
 * more, needs to know nothing. One that refuses the token would refuse it again.
 *
 * @throws FetchRejected, or an error of the network: the client may answer later.
 * @see OpenID Connect Back-Channel Logout §2.5 https://openid.net/specs/openid-connect-backchannel-1_0.html#BCRequest
 */
export async function sendLogoutToken(context: OAuthContext, ended: EndedSession): Promise<void> {
  const { store, settings, logger } = context;
  const client = await store.oauthClients.find(ended.clientId);
  const uri = client?.metadata.backchannel_logout_uri;
  if (client === undefined || uri === undefined) return;
  const token = makeLogoutToken(context, clientIdentifier(client), ended);
  try {
    await postText(new URL(uri), {
      body: new URLSearchParams({ logout_token: token }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      privateHosts: settings.oauthServerPrivateHosts,
      timeoutMs,
    });
  } catch (error) {
    if (!(error instanceof FetchRejected) || error.status !== 400) throw error;
    logger.warn({ client_id: client.id }, 'client refused logout token');
  }
}

/** @see OpenID Connect Back-Channel Logout §2.4 */
function makeLogoutToken(
  { settings, keys, random, nowMs }: OAuthContext,
  audience: string,
  { userId, sessionId }: EndedSession,
): string {
  const issuedAt = Math.floor(nowMs() / 1000);
  const claims = {
    iss: issuerUrl(settings),
    sub: userId,
    aud: audience,
    iat: issuedAt,
    exp: issuedAt + lifetimeSeconds,
    jti: random.uuid(),
    sid: sessionId,
    events: { [logoutEvent]: {} },
  };
  return signJwt(claims, keys, 'logout+jwt');
}
