import { parseDuration } from '@tollgate/kit/time';
import { getField, type LimitSpec } from '../definition/document.ts';
import { limitFields, rows } from '../definition/fields.ts';
import type { FieldName, Spelling } from '../definition/spelling.ts';
import type { Algorithm, Charge, StoreFailurePolicy, Unit } from '../definition/values.ts';
import { type AlgorithmOptions, type Lease, unitSeconds } from '../match/rule-set.ts';
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
  /** Windows of other limits: equal ones are shared. */
  readonly windows: Map<string, Windows>;
  readonly spelling: Spelling;
}

/** Reports a problem of one field of the limit. */
type Report = (field: FieldName, message: string) => void;

/** Checks the fields of a limit against each other. The result is complete without problems. */
export function checkLimit(limit: LimitSpec, options: LimitOptions, report: Report): CheckedLimit {
  const { forMemcached, spelling } = options;
  const unit = checkUnit(limit, report);
  const period = checkPeriod(limit, report);
  checkReplaces(limit, report);
  const algorithm = readChoice('algorithm', limit.algorithm || undefined, spelling, report) ?? 'fixed_window';
  if (algorithm !== 'fixed_window' && forMemcached) {
    const message = `the counter store has no ${spelling[algorithm]}: use ${spelling.fixed_window}, or another store`;
    report('algorithm', message);
  }
  checkConditions(limit, algorithm, spelling, report);
  checkBurst(limit, spelling, report);
  const charge = readChoice('charge', limit.charge, spelling, report);
  checkCharge(limit, { algorithm, charge, spelling }, report);
  const calendar = checkCalendar(limit, { ...options, unit }, report);
  const windows =
    period === undefined || algorithm !== 'fixed_window'
      ? calendar
      : share(options.windows, formatPeriod(period), () => Windows.ofPeriod(period));
  return {
    unit,
    unitSeconds: unit === undefined ? (period ?? 0) : unitSeconds[unit],
    windows,
    rate: toRate(limit, algorithm, charge),
    lease: checkLease(limit, report),
    charge,
    onStoreFailure: checkStoreFailure(limit.onStoreFailure, options, report),
  };
}

const restricted = rows.limit.filter(({ algorithms }) => algorithms !== undefined);
const onlyLimited = rows.limit.filter(({ withUnlimited }) => withUnlimited !== true);

/** Checks which fields may be together, as their rows say. */
function checkConditions(limit: LimitSpec, algorithm: Algorithm, spelling: Spelling, report: Report): void {
  if (limit.unlimited === true) {
    for (const field of onlyLimited) {
      if (getField(limit, field) !== undefined)
        report(field.file, `should not specify ${spelling[field.file]} when unlimited`);
    }
    return;
  }
  for (const field of restricted) {
    if (getField(limit, field) === undefined || field.algorithms?.includes(algorithm) !== false) continue;
    const required = field.algorithms.map((name) => spelling[name]).join(' or ');
    report(field.file, `${spelling[field.file]} requires the algorithm ${required}`);
  }
}

/** Reads a value without regard to case; undefined without one. */
function readChoice<Name extends keyof ChoiceOf>(
  name: Name,
  text: string | undefined,
  spelling: Spelling,
  report: Report,
): ChoiceOf[Name] | undefined {
  if (text === undefined) return undefined;
  const { file, values } = limitFields[name];
  const known = Object.keys(values) as ChoiceOf[Name][]; // keys of the row
  const lower = text.toLowerCase();
  const value = known.find((each) => each === lower);
  if (value === undefined) {
    const expected = known.map((each) => spelling[each]).join(', ');
    report(file, `invalid ${spelling[file]} '${text}': expected one of ${expected}`);
  }
  return value;
}

interface ChoiceOf {
  algorithm: Algorithm;
  charge: Charge;
  onStoreFailure: StoreFailurePolicy;
}

/** The messages are those of envoyproxy/ratelimit. */
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
  if (period === undefined || unlimited === true) return undefined;
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
  { timeZone, unlimited }: LimitSpec,
  { unit, windows, spelling }: CalendarOptions,
  report: Report,
): Windows | undefined {
  if (timeZone === undefined || unlimited === true) return undefined;
  if (!isCalendarUnit(unit)) {
    const units = calendarUnits.map((known) => spelling[known]).join(', ');
    report('time_zone', `${spelling.time_zone} requires one of the units ${units}`);
    return undefined;
  }
  try {
    return share(windows, `${unit} ${timeZone}`, () => Windows.ofCalendar(unit, timeZone));
  } catch {
    const expected = 'expected UTC or an IANA name such as Europe/Berlin';
    report('time_zone', `unknown time zone '${timeZone}': ${expected}`);
    return undefined;
  }
}

function share(windows: Map<string, Windows>, name: string, create: () => Windows): Windows {
  const known = windows.get(name);
  if (known !== undefined) return known;
  const created = create();
  windows.set(name, created);
  return created;
}

function checkBurst({ burst, requestsPerUnit }: LimitSpec, spelling: Spelling, report: Report): void {
  if (burst === undefined) return;
  const { min } = limitFields.burst;
  if (burst < min) report('burst', `burst must be at least ${min}`);
  else if (requestsPerUnit === 0)
    report('burst', `burst has no effect when ${spelling.requests_per_unit} is 0: remove it`);
}

function checkCharge(
  { maxDebt }: LimitSpec,
  {
    algorithm,
    charge,
    spelling,
  }: { readonly algorithm: Algorithm; readonly charge: Charge | undefined; readonly spelling: Spelling },
  report: Report,
): void {
  if (charge === 'always' && algorithm === 'concurrency') {
    const message = `${spelling.concurrency} cannot have charge: ${spelling.always}: a refused request is not in progress, so it takes no slot`;
    report('charge', message);
  }
  if (maxDebt !== undefined && charge !== 'always')
    report('max_debt', `${spelling.max_debt} requires charge: ${spelling.always}`);
}

function toRate(
  { burst, maxDebt, requestsPerUnit }: LimitSpec,
  algorithm: Algorithm,
  charge: Charge | undefined,
): AlgorithmOptions | undefined {
  if (algorithm === 'fixed_window') return undefined;
  const size = algorithm === 'token_bucket' ? (burst ?? requestsPerUnit) : requestsPerUnit;
  return { algorithm, burst: size, ...(charge === 'always' && { maxDebt: maxDebt ?? 'burst' }) };
}

function checkLease({ lease, unlimited, requestsPerUnit }: LimitSpec, report: Report): Lease | undefined {
  if (lease === undefined || unlimited === true) return undefined;
  const percent = parseLease(lease);
  const hits = Math.ceil((requestsPerUnit * (percent ?? 0)) / 100);
  if (percent === undefined)
    report('lease', `invalid lease '${lease}': expected ${limitFields.lease.bounds.form}`);
  else if (hits < 2) {
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
  const policy = readChoice('onStoreFailure', text, spelling, report);
  if (policy !== undefined && forMemcached && policy !== 'allow') {
    const message = `memcached fails open, so that ${spelling.on_store_failure} '${spelling[policy]}' would have no effect: use ${spelling.allow}, or another store`;
    report('on_store_failure', message);
  }
  return policy;
}

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
