import { authenticateClient } from '../authenticate-client.ts';
import { grants } from '../grants.ts';
import { ProtocolError } from '../protocol-error.ts';
import type { EndpointRequest, ServerContext } from '../server-context.ts';
import type { TestGrant } from '../token-ledger.ts';

/**
 * Answers a token request of any grant.
 *
 * @throws ProtocolError as RFC 6749 §5.2 asks.
 */
export async function tokenEndpoint(context: ServerContext, request: EndpointRequest): Promise<Response> {
  const client = await authenticateClient(context, request);
  const grantType = request.params.get('grant_type') ?? '';
  const handler = grants.get(grantType);
  if (handler === undefined) throw new ProtocolError('unsupported_grant_type', `no grant ${grantType}`);
  const outcome = await handler(context, client, request.params);
  if (!outcome.ok) throw outcome.error;
  const body = await issueTokens(context, outcome.grant, outcome.withRefreshToken);
  return Response.json(
    { ...body, ...(grantType.endsWith(':token-exchange') && { issued_token_type: accessTokenType }) },
    { headers: { 'cache-control': 'no-store' } },
  );
}

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token';

/** A successful token answer (RFC 6749 §5.1), with an id_token when `openid` is in the scope. */
export interface TokenAnswer {
  access_token: string;
  token_type: 'Bearer';
  expires_in: number;
  scope?: string;
  refresh_token?: string;
  id_token?: string;
}

/** Issues tokens for a grant and writes them as a token answer. */
export async function issueTokens(
  context: ServerContext,
  grant: TestGrant,
  withRefreshToken: boolean,
): Promise<TokenAnswer> {
  const { ledger, settings } = context;
  const answer: TokenAnswer = {
    access_token: ledger.issueAccessToken(grant).value,
    token_type: 'Bearer',
    expires_in: settings.accessTokenTtlSeconds,
  };
  if (grant.scope !== '') answer.scope = grant.scope;
  if (withRefreshToken) answer.refresh_token = ledger.issueRefreshToken(grant).value;
  if (grant.scope.split(' ').includes('openid')) answer.id_token = await makeIdToken(context, grant);
  return answer;
}

/** @see OpenID Connect Core §2 https://openid.net/specs/openid-connect-core-1_0.html#IDToken */
async function makeIdToken(context: ServerContext, grant: TestGrant): Promise<string> {
  const { settings, now, signingKey } = context;
  const issuedAt = Math.floor(now());
  const user = settings.users.find(({ subject, username }) => (subject ?? username) === grant.subject);
  const key = await signingKey();
  return key.sign({
    ...user?.claims,
    iss: settings.issuer,
    sub: grant.subject,
    aud: grant.clientId,
    iat: issuedAt,
    exp: issuedAt + settings.accessTokenTtlSeconds,
    ...(grant.nonce !== undefined && { nonce: grant.nonce }),
  });
}
