import type { Json, JsonObject } from '../users/user-json.ts';
import type { HeaderChanges } from './decision.ts';
import type { CallerIdentity } from './identity.ts';

/** Headers that carry the identity of the caller to upstreams. */
export const identityHeaderNames = [
  'x-auth-user-id',
  'x-auth-session-id',
  'x-auth-role',
  'x-auth-plan',
  'x-auth-aal',
  'x-auth-anonymous',
] as const;

type IdentityHeaderName = (typeof identityHeaderNames)[number];

/**
 * Names that upstreams may mistake for ours, or for those of another authentication proxy. CGI and
 * its successors do not distinguish `-` from `_`, and some of them no punctuation at all.
 */
const spoofableName = /^x[^a-z\d](?:auth|user)(?:[^a-z\d]|$)/;

/** Everything except visible ASCII, and the escape character itself. */
const notPlain = /[^!-$&-~]/gu;

/** Sets the identity headers, and removes what the client sent under their names. */
export function identityHeaders(
  identity: CallerIdentity | undefined,
  incomingNames: readonly string[],
): HeaderChanges {
  const set = identity === undefined ? {} : toHeaders(identity);
  const spoofed = incomingNames.filter((name) => spoofableName.test(name));
  const remove = new Set<string>([...identityHeaderNames, ...spoofed]);
  for (const name of Object.keys(set)) remove.delete(name);
  return { set, remove: [...remove] };
}

function toHeaders(identity: CallerIdentity): Readonly<Record<string, string>> {
  const values: Readonly<Record<IdentityHeaderName, string | undefined>> = {
    'x-auth-user-id': identity.userId,
    'x-auth-session-id': identity.sessionId,
    'x-auth-role': identity.role,
    'x-auth-plan': identity.plan,
    'x-auth-aal': identity.aal,
    'x-auth-anonymous': String(identity.isAnonymous),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value = '']) => (value === '' ? [] : [[name, encode(value)]])),
  );
}

/** Encodes a value so that it cannot split a header; `decodeURIComponent` restores it. */
function encode(value: string): string {
  return value.toWellFormed().replace(notPlain, encodeURIComponent);
}

/**
 * Dynamic metadata for rate limits, in Envoy's namespace `envoy.filters.http.ext_authz`. Empty
 * without an identity, so that the `default_value` of a descriptor applies.
 */
export function identityMetadata(identity: CallerIdentity | undefined): JsonObject {
  if (identity === undefined) return {};
  const { userId, sessionId, role, plan, aal, isAnonymous, limit } = identity;
  return {
    ...(userId !== undefined && { user_id: userId }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(role !== '' && { role }),
    plan,
    aal,
    anonymous: isAnonymous,
    ...(limit && { limit: { requests_per_unit: limit.requestsPerUnit, unit: limit.unit } }),
  };
}

/** The rate limit of a single user, which Envoy reads from dynamic metadata. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** A value of envoy.type.v3.RateLimitUnit. */
  readonly unit: 'SECOND' | 'MINUTE' | 'HOUR' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR';
}

type ParsedLimitOverride =
  | { readonly ok: true; readonly limit: LimitOverride | undefined }
  | { readonly ok: false; readonly reason: string };

const units: ReadonlySet<string> = new Set<LimitOverride['unit']>([
  'SECOND',
  'MINUTE',
  'HOUR',
  'DAY',
  'WEEK',
  'MONTH',
  'YEAR',
]);

/** Envoy's type is uint32. */
const maxRequestsPerUnit = 2 ** 32 - 1;

/**
 * Parses `app_metadata.limit`, or else `app_metadata.rate_limit`: `{ requests_per_unit, unit }`.
 */
export function parseLimitOverride({ limit, rate_limit: rateLimit }: JsonObject): ParsedLimitOverride {
  const given = limit ?? rateLimit;
  if (given === undefined || given === null) return { ok: true, limit: undefined };
  if (!isObject(given)) return reject('expected an object with requests_per_unit and unit');
  const { requests_per_unit: requestsPerUnit, unit } = given;
  if (!isRequestCount(requestsPerUnit))
    return reject(`requests_per_unit must be a whole number from 1 to ${maxRequestsPerUnit}`);
  const upper = typeof unit === 'string' ? unit.toUpperCase() : '';
  if (!isUnit(upper)) return reject(`unit must be one of ${[...units].join(', ').toLowerCase()}`);
  return { ok: true, limit: { requestsPerUnit, unit: upper } };
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRequestCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= maxRequestsPerUnit;
}

function isUnit(text: string): text is LimitOverride['unit'] {
  return units.has(text);
}

function reject(reason: string): ParsedLimitOverride {
  return { ok: false, reason };
}
