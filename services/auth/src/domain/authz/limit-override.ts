import type { Json, JsonObject } from '../json.ts';
import type { LimitOverride } from './caller-identity.ts';

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
