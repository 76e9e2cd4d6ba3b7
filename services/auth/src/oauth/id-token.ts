import { createHash } from 'node:crypto';
import type { JsonObject } from '@tollgate/kit/json';
import { idTokenUse, issuerUrl, type JwsAlgorithm, signJwt, tokenUseClaim } from '../keys/jwt.ts';
import type { Authentication } from '../sessions/authentication-store.ts';
import type { User } from '../users/user.ts';
import type { OAuthClient } from './client-store.ts';
import type { OAuthContext } from './clients.ts';
import { clientIdentifier } from './find-client.ts';

interface IdTokenRequest {
  readonly user: User;
  readonly client: Pick<OAuthClient, 'id' | 'document_url'>;
  /** The session of the client. */
  readonly sessionId: string;
  readonly accessToken: string;
  /** Separated by spaces. */
  readonly scope: string;
  readonly nonce?: string | null;
  /** Undefined if it is unknown. */
  readonly authentication: Authentication | undefined;
}

/**
 * The ID token of an authorization; undefined without the scope `openid`.
 *
 * @see OpenID Connect Core §2 https://openid.net/specs/openid-connect-core-1_0.html#IDToken
 */
export function makeIdToken(
  { settings, keys, nowMs }: OAuthContext,
  { user, client, sessionId, accessToken, scope, nonce = null, authentication }: IdTokenRequest,
): string | undefined {
  const scopes = new Set(scope.split(' '));
  if (!scopes.has('openid')) return undefined;
  const issuedAt = Math.floor(nowMs() / 1000);
  const claims = {
    iss: issuerUrl(settings),
    ...userClaims(user, scopes),
    aud: clientIdentifier(client),
    iat: issuedAt,
    exp: issuedAt + Math.floor(settings.jwtExpMs / 1000),
    ...(authentication && authenticationClaims(authentication)),
    ...(nonce !== null && { nonce }),
    at_hash: hashOfToken(accessToken, keys.current.alg),
    sid: sessionId,
    [tokenUseClaim]: idTokenUse,
  };
  return signJwt(claims, keys);
}

function authenticationClaims({ authenticated_at: at, aal, methods }: Authentication): JsonObject {
  const names = methods.map((method) => registeredMethods.get(method) ?? method);
  return {
    auth_time: Math.floor(at.getTime() / 1000),
    acr: aal,
    amr: [...new Set([...names, ...(aal === 'aal1' ? [] : ['mfa'])])],
  };
}

/** Methods of sessions that have a name in the registry. @see RFC 8176 §2 */
const registeredMethods: ReadonlyMap<string, string> = new Map([
  ['password', 'pwd'],
  ['totp', 'otp'],
  ['mfa/phone', 'sms'],
  ['mfa/webauthn', 'pop'],
  ['passkey', 'pop'],
]);

/**
 * The left half of the hash, with the hash function of the signature.
 *
 * @see OpenID Connect Core §3.1.3.6
 */
function hashOfToken(token: string, alg: JwsAlgorithm): string {
  const digest = createHash(alg.endsWith('256') ? 'sha256' : 'sha512')
    .update(token)
    .digest();
  return digest.subarray(0, digest.length / 2).toString('base64url');
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

/** All claims of ID tokens and of `/oauth/userinfo`. */
export const claimNames: readonly string[] = [
  ...['iss', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'acr', 'amr', 'at_hash', 'sid'],
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
