import type { RequestContext } from '../client/hooks.ts';

/** Attribute values: all from bounded sets, so that no metric grows without end. */
export type Attributes = Record<string, string | number>;

const knownGrantTypes: ReadonlySet<string> = new Set([
  'authorization_code',
  'client_credentials',
  'password',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:device_code',
  'urn:ietf:params:oauth:grant-type:jwt-bearer',
  'urn:ietf:params:oauth:grant-type:token-exchange',
]);

/** RFC 6749 §4.1.2.1 and §5.2, RFC 6750 §3.1, RFC 7009 §2.2.1, RFC 8628 §3.5, RFC 8693 §2.2.2, RFC 9126, RFC 9449. */
const knownErrorCodes: ReadonlySet<string> = new Set([
  'access_denied',
  'authorization_pending',
  'expired_token',
  'insufficient_scope',
  'invalid_client',
  'invalid_dpop_proof',
  'invalid_grant',
  'invalid_request',
  'invalid_scope',
  'invalid_target',
  'invalid_token',
  'server_error',
  'slow_down',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_token_type',
  'use_dpop_nonce',
]);

/** What describes one call: operation, grant and how the client authenticates; no ids, no URLs. */
export function contextAttributes({ operation, grantType, clientAuth }: RequestContext): Attributes {
  return {
    'oauth.operation': operation,
    ...(grantType !== undefined && { 'oauth.grant_type': bounded(grantType, knownGrantTypes) }),
    ...(clientAuth !== undefined && { 'oauth.client_auth': clientAuth }),
  };
}

/** The server's `error`, or `other` when no specification knows it. */
export function errorCodeAttribute(code: string | undefined): Attributes {
  return code === undefined ? {} : { 'error.type': bounded(code, knownErrorCodes) };
}

function bounded(value: string, known: ReadonlySet<string>): string {
  return known.has(value) ? value : 'other';
}
