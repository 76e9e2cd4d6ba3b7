import type { Json, JsonObject } from '@tollgate/kit/json';

/** Values of envoy.type.v3.RateLimitUnit. */
const limitUnits = ['SECOND', 'MINUTE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'] as const;

/** The rate limit of a single caller or organization, which replaces the number of a rule. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  readonly unit: (typeof limitUnits)[number];
}

type ParsedLimitOverride =
  | { readonly ok: true; readonly limit: LimitOverride | undefined }
  | { readonly ok: false; readonly reason: string };

/** Envoy's type is uint32. */
const maxRequestsPerUnit = 2 ** 32 - 1;

/** Parses `{ requests_per_unit, unit }`; undefined and `null` are no limit. */
export function parseLimitOverride(given: Json | undefined): ParsedLimitOverride {
  if (given === undefined || given === null) return { ok: true, limit: undefined };
  if (!isObject(given)) return reject('expected an object with requests_per_unit and unit');
  const { requests_per_unit: requestsPerUnit, unit } = given;
  if (!isRequestCount(requestsPerUnit))
    return reject(`requests_per_unit must be a whole number from 1 to ${maxRequestsPerUnit}`);
  const known = limitUnits.find((name) => typeof unit === 'string' && name === unit.toUpperCase());
  if (known === undefined) return reject(`unit must be one of ${limitUnits.join(', ').toLowerCase()}`);
  return { ok: true, limit: { requestsPerUnit, unit: known } };
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRequestCount(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= maxRequestsPerUnit;
}

function reject(reason: string): ParsedLimitOverride {
  return { ok: false, reason };
}
