import type { Unit } from '@tollgate/rules/rule-set';

/**
 * The units by their number on the wire; WEEK came last and so follows YEAR.
 *
 * @see envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit
 */
const units: readonly (Unit | undefined)[] = [
  undefined,
  'second',
  'minute',
  'hour',
  'day',
  'month',
  'year',
  'week',
];

/** The unit of a wire number; undefined for UNKNOWN and numbers that are no unit. */
export function unitOfWire(number: number): Unit | undefined {
  return units[number];
}

/** The wire number of a unit. */
export function wireOfUnit(unit: Unit): number {
  return units.indexOf(unit);
}
