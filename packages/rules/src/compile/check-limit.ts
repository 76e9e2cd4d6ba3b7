import { parseDuration } from '@tollgate/kit/time';
import type { LimitSpec } from '../definition/document.ts';
import { limitFields } from '../definition/fields.ts';
import type { FieldName, Spelling } from '../definition/spelling.ts';
import {
  type AlgorithmOptions,
  type Charge,
  type Lease,
  type StoreFailurePolicy,
  type Unit,
  unitSeconds,
} from '../match/rule-set.ts';
import { calendarUnits, formatPeriod, isCalendarUnit, Windows } from '../match/windows.ts';

/** The checked values of a limit. */
export interface CheckedLimit {
  readonly unit: Unit | undefined;
  readonly unitSeconds: number;
  readonly windows: Windows | undefined;
  /** Undefined for fixed windows. */
  readonly rate: AlgorithmOptions | undefined;
  readonly lease: Lease | undefined;
  readonly charge: Charge | undefined;
  readonly onStoreFailure: StoreFailurePolicy | undefined;
}

interface LimitOptions {
  readonly forMemcached: boolean;
  /** Those of other limits: equal ones are shared. */
  readonly windows: Map<string, Windows>;
  readonly spelling: Spelling;
}

/** Reports a problem of one field of the limit. */
type Report = (field: FieldName, message: string) => void;

/** Checks the fields of a limit against each other. The result is complete without problems. */
export function checkLimit(limit: LimitSpec, options: LimitOptions, report: Report): CheckedLimit {
  const unit = checkUnit(limit, report);
  const period = checkPeriod(limit, report);
  checkReplaces(limit, report);
  const algorithm = checkAlgorithm(limit, options, report);
  const charge = checkCharge(limit, options, report);
  const rate = algorithm && withDebt(algorithm, limit, charge);
  const calendar = checkCalendar(limit, { ...options, unit }, report);
  const seconds = unit === undefined ? (period ?? 0) : unitSeconds[unit];
  const windows =
    period === undefined || rate !== undefined
      ? calendar
      : share(options.windows, formatPeriod(period), () => Windows.ofPeriod(period));
  const lease = checkLease(limit, options, report);
  const onStoreFailure = checkStoreFailure(limit.onStoreFailure, options, report);
  if (limit.unlimited === true && onStoreFailure !== undefined) {
    const message = `should not specify ${options.spelling.on_store_failure} when unlimited`;
    report('on_store_failure', message);
  }
  return { unit, unitSeconds: seconds, windows, rate, lease, charge, onStoreFailure };
}

function checkUnit({ unit: text = '', period, unlimited }: LimitSpec, report: Report): Unit | undefined {
  const unit = parseUnit(text);
  if (unlimited === true) {
    if (unit !== undefined) report('unit', 'should not specify rate limit unit when unlimited');
    return undefined;
  }
  if (period !== undefined && text !== '') report('unit', 'set either unit or period, not both');
  else if (unit === undefined && period === undefined) report('unit', `invalid rate limit unit '${text}'`);
  return unit;
}

/** A leap year. */
const maxPeriodSeconds = 366 * 86_400;

/** The period in seconds. */
function checkPeriod({ period, unlimited }: LimitSpec, report: Report): number | undefined {
  if (period === undefined) return undefined;
  if (unlimited === true) {
    report('period', 'should not specify a period when unlimited');
    return undefined;
  }
  const seconds = (parseDuration(period) ?? 0) / 1000;
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= maxPeriodSeconds) return seconds;
  const expected = `whole seconds from 1s to ${formatPeriod(maxPeriodSeconds)}, such as 90s, 5m or 36h`;
  report('period', `invalid rate limit period '${period}': expected ${expected}`);
  return undefined;
}

interface CalendarOptions extends LimitOptions {
  readonly unit: Unit | undefined;
}

/** The windows of a limit with a time zone. */
function checkCalendar(
  { timeZone, algorithm = '' }: LimitSpec,
  { unit, windows, spelling }: CalendarOptions,
  report: Report,
): Windows | undefined {
  if (timeZone === undefined) return undefined;
  if (!isCalendarUnit(unit)) {
    const units = calendarUnits.map((known) => spelling[known]).join(', ');
    report('time_zone', `${spelling.time_zone} requires one of the units ${units}`);
  } else if (algorithm !== '' && algorithm.toLowerCase() !== 'fixed_window') {
    report('time_zone', `${spelling.time_zone} requires the algorithm ${spelling.fixed_window}`);
  } else {
    try {
      return share(windows, `${unit} ${timeZone}`, () => Windows.ofCalendar(unit, timeZone));
    } catch {
      const expected = 'expected UTC or an IANA name such as Europe/Berlin';
      report('time_zone', `unknown time zone '${timeZone}': ${expected}`);
    }
  }
  return undefined;
}

function share(windows: Map<string, Windows>, name: string, create: () => Windows): Windows {
  const known = windows.get(name);
  if (known !== undefined) return known;
  const created = create();
  windows.set(name, created);
  return created;
}

function checkAlgorithm(
  limit: LimitSpec,
  { forMemcached, spelling }: LimitOptions,
  report: Report,
): AlgorithmOptions | undefined {
  const { algorithm: text = '', burst, unlimited, requestsPerUnit } = limit;
  const algorithm = text.toLowerCase();
  if (burst !== undefined && algorithm !== 'token_bucket') {
    report('burst', `burst requires the algorithm ${spelling.token_bucket}`);
  } else if (burst === 0) report('burst', 'burst must be at least 1');
  else if (burst !== undefined && requestsPerUnit === 0) {
    report('burst', `burst has no effect when ${spelling.requests_per_unit} is 0: remove it`);
  }
  if (algorithm === '' || algorithm === 'fixed_window') return undefined;
  if (!isRateAlgorithm(algorithm)) {
    const known = (['fixed_window', ...rateAlgorithms] as const).map((name) => spelling[name]).join(', ');
    report('algorithm', `invalid rate limit algorithm '${text}': expected one of ${known}`);
    return undefined;
  }
  if (unlimited === true) report('algorithm', 'should not specify an algorithm when unlimited');
  else if (forMemcached) {
    const message = `the counter store has no ${spelling[algorithm]}: use ${spelling.fixed_window}, or another store`;
    report('algorithm', message);
  }
  return { algorithm, burst: algorithm === 'token_bucket' ? (burst ?? requestsPerUnit) : requestsPerUnit };
}

const rateAlgorithms: readonly AlgorithmOptions['algorithm'][] = [
  'sliding_window',
  'token_bucket',
  'concurrency',
];

function isRateAlgorithm(text: string): text is AlgorithmOptions['algorithm'] {
  return rateAlgorithms.some((known) => known === text);
}

function checkCharge(limit: LimitSpec, { spelling }: LimitOptions, report: Report): Charge | undefined {
  const { charge: text, algorithm = '', unlimited } = limit;
  const charge = charges.find((known) => known === text?.toLowerCase());
  if (text !== undefined && charge === undefined) {
    const known = charges.map((name) => spelling[name]).join(', ');
    report('charge', `invalid charge '${text}': expected one of ${known}`);
  } else if (charge !== undefined && unlimited === true) {
    report('charge', 'should not specify charge when unlimited');
  } else if (charge === 'always' && algorithm.toLowerCase() === 'concurrency') {
    const message = `${spelling.concurrency} cannot have charge: ${spelling.always}: a refused request is not in progress, so it takes no slot`;
    report('charge', message);
  }
  checkMaxDebt(limit, { spelling, charge }, report);
  return charge;
}

function checkMaxDebt(
  { maxDebt, algorithm = '' }: LimitSpec,
  { spelling, charge }: Pick<LimitOptions, 'spelling'> & { readonly charge: Charge | undefined },
  report: Report,
): void {
  if (maxDebt === undefined) return;
  const { max_debt: name, token_bucket: bucket, sliding_window: sliding } = spelling;
  if (charge !== 'always') report('max_debt', `${name} requires charge: ${spelling.always}`);
  else if (algorithm === '' || algorithm.toLowerCase() === 'fixed_window') {
    const reason = 'a fixed window counts all hits, and the next one starts at 0';
    report('max_debt', `${name} requires the algorithm ${bucket} or ${sliding}: ${reason}`);
  }
}

function withDebt(
  algorithm: AlgorithmOptions,
  { maxDebt }: LimitSpec,
  charge: Charge | undefined,
): AlgorithmOptions {
  return charge === 'always' ? { ...algorithm, maxDebt: maxDebt ?? 'burst' } : algorithm;
}

const charges: readonly Charge[] = ['always', 'allowed'];

function checkLease(limit: LimitSpec, { spelling }: LimitOptions, report: Report): Lease | undefined {
  const { lease, algorithm = '', unlimited, requestsPerUnit } = limit;
  if (lease === undefined) return undefined;
  const percent = parseLease(lease);
  const hits = Math.ceil((requestsPerUnit * (percent ?? 0)) / 100);
  if (percent === undefined)
    report('lease', `invalid lease '${lease}': expected ${limitFields.lease.bounds.form}`);
  else if (unlimited === true) report('lease', 'should not specify a lease when unlimited');
  else if (algorithm !== '' && algorithm.toLowerCase() !== 'fixed_window') {
    report('lease', `lease requires the algorithm ${spelling.fixed_window}`);
  } else if (hits < 2) {
    const found = `${lease} of ${requestsPerUnit} requests`;
    report('lease', `lease ${found} is less than 2 hits and has no effect: increase it, or remove it`);
  } else return { hits, limit: requestsPerUnit };
  return undefined;
}

/** The percentage; undefined for an invalid text. */
export function parseLease(text: string): number | undefined {
  return limitFields.lease.bounds.pattern.test(text) ? Number(text.slice(0, -1)) : undefined;
}

/** Checks the policy of a limit or of a domain. */
export function checkStoreFailure(
  text: string | undefined,
  { forMemcached, spelling }: Omit<LimitOptions, 'windows'>,
  report: Report,
): StoreFailurePolicy | undefined {
  if (text === undefined) return undefined;
  const lower = text.toLowerCase();
  const policy = storeFailurePolicies.find((known) => known === lower);
  if (policy === undefined) {
    const known = storeFailurePolicies.map((name) => spelling[name]).join(', ');
    report('on_store_failure', `invalid ${spelling.on_store_failure} '${text}': expected one of ${known}`);
  } else if (forMemcached && policy !== 'allow') {
    const message = `memcached fails open, so that ${spelling.on_store_failure} '${spelling[policy]}' would have no effect: use ${spelling.allow}, or another store`;
    report('on_store_failure', message);
  }
  return policy;
}

const storeFailurePolicies: readonly StoreFailurePolicy[] = ['allow', 'deny', 'local'];

function checkReplaces({ name: ownName, replaces }: LimitSpec, report: Report): void {
  for (const name of replaces ?? []) {
    if (name === '') report('replaces', 'should not have an empty replaces entry');
    else if (name === ownName) report('replaces', 'replaces should not contain name of same descriptor');
  }
}

const isUnit = (text: string): text is Unit => Object.hasOwn(unitSeconds, text);

/** Reads a unit without regard to case. `unknown`, empty and any other text give undefined. */
export function parseUnit(text: string): Unit | undefined {
  if (isUnit(text)) return text;
  const lower = text.toLowerCase();
  return isUnit(lower) ? lower : undefined;
}
