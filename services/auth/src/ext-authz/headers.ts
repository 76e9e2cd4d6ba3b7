import type { Json, JsonObject } from '../users/user-json.ts';
import type { HeaderChanges } from './decision.ts';
import type { CallerIdentity, LimitOverride } from './identity.ts';

/** Names of the headers that tell upstreams who calls. */
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
 * Names that upstreams take for ours, or for those of another authentication. To CGI and its heirs `-` and `_` are the same, and to some
 * of them whatever is neither letter nor digit.
 */
const identityName = /^x[^a-z\d](?:auth|user)(?:[^a-z\d]|$)/;

/** All but visible ASCII, and the character that marks what is encoded. */
const notPlain = /[^!-$&-~]/gu;

/** Headers for the upstream. Nothing that a client sent under the name of one gets there, whether or not there is an identity. */
export function identityHeaders(
  identity: CallerIdentity | undefined,
  incomingNames: readonly string[],
): HeaderChanges {
  const set = identity === undefined ? {} : headersOf(identity);
  const suspects = incomingNames.filter((name) => identityName.test(name));
  const remove = new Set<string>([...identityHeaderNames, ...suspects]);
  for (const name of Object.keys(set)) remove.delete(name);
  return { set, remove: [...remove] };
}

function headersOf(identity: CallerIdentity): Readonly<Record<string, string>> {
  const values: Readonly<Record<IdentityHeaderName, string | undefined>> = {
    'x-auth-user-id': identity.userId,
    'x-auth-session-id': identity.sessionId,
    'x-auth-role': identity.role,
    'x-auth-plan': identity.plan,
    'x-auth-aal': identity.aal,
    'x-auth-anonymous': String(identity.isAnonymous),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value = '']) => (value === '' ? [] : [[name, plain(value)]])),
  );
}

/** A value that splits no header and is read the same everywhere; `decodeURIComponent` gives the text back. */
function plain(value: string): string {
  return value.toWellFormed().replace(notPlain, encodeURIComponent);
}

/**
 * What rate limits see of a caller: Envoy's dynamic metadata, in the namespace `envoy.filters.http.ext_authz`. Empty without an
 * identity, so that a descriptor's `default_value` holds.
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

/** A limit, none, or why what stands there is not one. */
export type ReadLimitOverride =
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

/** What Envoy's counter of requests holds (uint32). */
const mostRequests = 2 ** 32 - 1;

/** Reads the limit of its own that `app_metadata.limit`, or else `app_metadata.rate_limit`, gives a user: `{ requests_per_unit, unit }`. */
export function readLimitOverride({ limit, rate_limit: rateLimit }: JsonObject): ReadLimitOverride {
  const given = limit ?? rateLimit;
  if (given === undefined || given === null) return { ok: true, limit: undefined };
  if (!isObject(given)) return refuse('it is no object with requests_per_unit and unit');
  const { requests_per_unit: requestsPerUnit, unit } = given;
  if (!isCount(requestsPerUnit))
    return refuse(`requests_per_unit is no whole number from 1 to ${mostRequests}`);
  const upper = typeof unit === 'string' ? unit.toUpperCase() : '';
  if (!isUnit(upper)) return refuse(`unit is none of ${[...units].join(', ').toLowerCase()}`);
  return { ok: true, limit: { requestsPerUnit, unit: upper } };
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= mostRequests;
}

function isUnit(text: string): text is LimitOverride['unit'] {
  return units.has(text);
}

function refuse(reason: string): ReadLimitOverride {
  return { ok: false, reason };
}
