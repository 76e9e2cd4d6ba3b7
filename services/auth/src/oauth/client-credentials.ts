import { OAuthError } from '../errors.ts';
import { keyClaims } from '../keys/bound-tokens.ts';
import { credentialVersion, versionClaim } from '../keys/client-tokens.ts';
import { issuerUrl, signJwt, tokenAudience } from '../keys/jwt.ts';
import { detailsMember, requestDetails } from './authorization-details.ts';
import { isAudience } from './client-input.ts';
import { accessTokenType } from './client-metadata.ts';
import type { StoredClient } from './client-store.ts';
import type { GrantContext, TokenRequest, TokenResponse } from './grant.ts';
import { grantScopes } from './scopes.ts';

/**
 * Issues a token for the client itself.
 *
 * @throws OAuthError `invalid_scope`, `invalid_target`, `invalid_authorization_details`
 * @see RFC 6749 §4.4, RFC 8707, RFC 9396 §6
 */
export async function grantClientCredentials(
  context: GrantContext,
  client: StoredClient,
  request: TokenRequest,
): Promise<TokenResponse> {
  const { settings, keys, random, nowMs } = context;
  const scope = grantScopes(request.scope, client.scopes).join(' ');
  const audiences = grantAudiences(request.resources, client.audiences);
  const requested = await requestDetails(context, client, {
    ...{ text: request.details, grantType: 'client_credentials', scope },
    ...{ resource: request.resources[0] ?? null, metadata: request.metadata },
  });
  const details = detailsMember(requested?.details ?? []);
  const issuedAt = Math.floor(nowMs() / 1000);
  const expiresIn = Math.floor(settings.oauthServerClientTokenTtlMs / 1000);
  const [first = tokenAudience(settings.jwtAud, settings), ...others] = audiences;
  const claims = {
    iss: issuerUrl(settings),
    sub: client.id,
    client_id: client.id,
    ...(first !== '' && { aud: others.length === 0 ? first : audiences }),
    ...(scope !== '' && { scope }),
    ...details,
    iat: issuedAt,
    exp: issuedAt + expiresIn,
    jti: random.uuid(),
    ...keyClaims(request.thumbprint),
    [versionClaim]: credentialVersion(client),
  };
  return {
    access_token: signJwt(claims, keys, accessTokenType(client.metadata)),
    expires_in: expiresIn,
    ...(scope !== '' && { scope }),
    ...details,
  };
}

/** The requested resources, or else all that the client may use. */
function grantAudiences(requested: readonly string[], allowed: readonly string[]): readonly string[] {
  if (requested.length === 0) return allowed;
  const refused = requested.find((resource) => !allowed.includes(resource));
  if (refused === undefined) return [...new Set(requested)];
  throw new OAuthError(
    'invalid_target',
    isAudience(refused)
      ? 'The client may not use this resource'
      : 'resource must be an absolute URI without fragment',
  );
}
