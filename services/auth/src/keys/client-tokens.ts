import { createHash } from 'node:crypto';
import type { JwtClaims } from './jwt.ts';
import { isEqualSecret } from './secrets.ts';

/** The credentials of a client. */
export interface ClientCredentials {
  /** Base64url of the SHA-256 digest of the secret. Empty without a secret. */
  readonly client_secret_hash: string | null;
  readonly token_endpoint_auth_method: string;
  readonly jwks: unknown;
  readonly jwks_uri: string | null;
  readonly metadata: { readonly workload_identities?: readonly unknown[] | undefined };
}

/** @see RFC 7523 §2.1 https://www.rfc-editor.org/rfc/rfc7523#section-2.1 */
export const jwtBearerGrantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Grants by which clients get tokens for themselves. */
export const machineGrants: readonly string[] = ['client_credentials', jwtBearerGrantType];

/** Name of the claim with {@link credentialVersion}. */
export const versionClaim = 'client_version';

const versionChars = 16;

/**
 * Identifies the credentials of a client. Its tokens have it, and are refused once the client has
 * other credentials, whichever server changed them. Times would not tell tokens of the same second.
 */
export function credentialVersion(credentials: ClientCredentials): string {
  const { client_secret_hash: hash, token_endpoint_auth_method: method, jwks, jwks_uri: uri } = credentials;
  const { workload_identities: workloads = [] } = credentials.metadata;
  const parts = [hash ?? '', method, jwks ?? null, uri, ...(workloads.length > 0 ? [workloads] : [])];
  const text = JSON.stringify(parts);
  return createHash('sha256').update(text).digest('base64url').slice(0, versionChars);
}

/**
 * The client that is the subject of a token, which it got for itself. Tokens of sessions may name
 * the client of the session, too. Undefined: the token is of no client.
 */
export function clientOfToken({ sub, client_id: clientId }: JwtClaims): string | undefined {
  return typeof clientId === 'string' && clientId !== '' && clientId === sub ? clientId : undefined;
}

/** The form in which the database has a secret: base64url of its SHA-256 digest, as in GoTrue. */
export function hashClientSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

/** Compares in constant time. */
export function isClientSecret(secret: string, hash: string): boolean {
  return isEqualSecret(hashClientSecret(secret), hash);
}
