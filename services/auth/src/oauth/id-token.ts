import type { JsonObject } from '@tollgate/kit/json';
import { idTokenUse, issuerUrl, signJwt, tokenUseClaim } from '../keys/jwt.ts';
import type { User } from '../users/user.ts';
import type { Authorization } from './authorization-store.ts';
import type { OAuthClient } from './client-store.ts';
import type { OAuthContext } from './clients.ts';

/**
 * The ID token of an authorization; undefined without the scope `openid`. `auth_time` is the time
 * of the consent.
 *
 * @see OpenID Connect Core §2 https://openid.net/specs/openid-connect-core-1_0.html#IDToken
 */
export function makeIdToken(
  { settings, keys, nowMs }: OAuthContext,
  {
    user,
    authorization,
    client,
  }: {
    readonly user: User;
    readonly authorization: Pick<Authorization, 'scope' | 'nonce' | 'approved_at'>;
    readonly client: Pick<OAuthClient, 'id'>;
  },
): string | undefined {
  const { scope, nonce, approved_at: approvedAt } = authorization;
  const scopes = new Set(scope.split(' '));
  if (!scopes.has('openid')) return undefined;
  const issuedAt = Math.floor(nowMs() / 1000);
  const claims = {
    iss: issuerUrl(settings),
    ...userClaims(user, scopes),
    aud: client.id,
    iat: issuedAt,
    exp: issuedAt + Math.floor(settings.jwtExpMs / 1000),
    ...(approvedAt && { auth_time: Math.floor(approvedAt.getTime() / 1000) }),
    ...(nonce !== null && { nonce }),
    [tokenUseClaim]: idTokenUse,
  };
  return signJwt(claims, keys);
}

/** Claims about a user that scopes ask for. @see OpenID Connect Core §5.1, §5.4 */
export function userClaims(user: User, scopes: ReadonlySet<string>): JsonObject {
  const { email, phone, userMetadata } = user;
  return {
    sub: user.id,
    ...(scopes.has('email') &&
      email !== '' && {
        email,
        email_verified: user.emailConfirmedAt !== undefined,
      }),
    ...(scopes.has('phone') &&
      phone !== '' && {
        // GoTrue's names, and the standard ones.
        phone,
        phone_verified: user.phoneConfirmedAt !== undefined,
        phone_number: `+${phone}`,
        phone_number_verified: user.phoneConfirmedAt !== undefined,
      }),
    ...(scopes.has('profile') && {
      ...firstText('name', userMetadata, ['full_name', 'name']),
      ...firstText('picture', userMetadata, ['avatar_url', 'picture']),
      ...firstText('preferred_username', userMetadata, ['preferred_username', 'user_name']),
      updated_at: Math.floor(user.updatedAt.getTime() / 1000),
    }),
  };
}

/** Names of {@link userClaims}. */
export const userClaimNames: readonly string[] = [
  'sub',
  'email',
  'email_verified',
  'phone',
  'phone_verified',
  'phone_number',
  'phone_number_verified',
  'name',
  'picture',
  'preferred_username',
  'updated_at',
];

function firstText(claim: string, metadata: JsonObject, names: readonly string[]): JsonObject {
  const value = names.map((name) => metadata[name]).find((text) => typeof text === 'string' && text !== '');
  return value === undefined ? {} : { [claim]: value };
}
