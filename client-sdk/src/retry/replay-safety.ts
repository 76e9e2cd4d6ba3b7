import type { RequestContext } from '../client/hooks.ts';

/**
 * What may be sent again.
 * `never`: not even after an answer that says so. `unprocessed`: only when the server cannot have acted on it.
 * `always`: a second time does no harm.
 */
export type ReplaySafety = 'never' | 'unprocessed' | 'always';

/** Grants that spend what they show. A device polls by rules of its own (RFC 8628 §3.5). */
const singleUseGrants: ReadonlySet<string | undefined> = new Set([
  'authorization_code',
  'urn:ietf:params:oauth:grant-type:device_code',
]);

const idempotentMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);

/**
 * Judges one call. A code is spent by its first use, and its second use revokes what the first gave (RFC 6749 §4.1.2).
 * A rotating refresh token that was used twice looks stolen (RFC 9700 §4.14.2), unless the server takes repeats for one
 * (`refreshIsIdempotent`). Every other request to the authorization server can be repeated: at worst a token more is issued.
 */
export function replaySafety(context: RequestContext, refreshIsIdempotent: boolean): ReplaySafety {
  const { operation, grantType, method } = context;
  if (operation === 'token') {
    if (singleUseGrants.has(grantType)) return 'never';
    return grantType === 'refresh_token' && !refreshIsIdempotent ? 'unprocessed' : 'always';
  }
  if (operation === 'resource' || operation === 'request') {
    return idempotentMethods.has(method.toUpperCase()) ? 'always' : 'unprocessed';
  }
  return 'always';
}
