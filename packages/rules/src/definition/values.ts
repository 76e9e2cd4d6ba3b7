/** A value of a field with a fixed set of values. */
interface Value {
  /** Spelling in a RateLimitConfig, as Kubernetes spells enumerations. */
  readonly resource: string;
  /** Number on the wire; 0 is also an absent field. */
  readonly wire: number;
}

/** Values of a field by their spelling in rule files. */
export type Values = Readonly<Record<string, Value>>;

/** The spellings of values in a RateLimitConfig. */
export const resourceTexts = (values: Values): string[] =>
  Object.values(values).map(({ resource }) => resource);

/** Units of fixed windows. */
export const unitValues = {
  second: { resource: 'Second', wire: 1 },
  minute: { resource: 'Minute', wire: 2 },
  hour: { resource: 'Hour', wire: 3 },
  day: { resource: 'Day', wire: 4 },
  week: { resource: 'Week', wire: 7 },
  month: { resource: 'Month', wire: 5 },
  year: { resource: 'Year', wire: 6 },
} as const satisfies Values;

/** Ways of counting. */
export const algorithmValues = {
  fixed_window: { resource: 'FixedWindow', wire: 0 },
  sliding_window: { resource: 'SlidingWindow', wire: 1 },
  token_bucket: { resource: 'TokenBucket', wire: 2 },
  concurrency: { resource: 'Concurrency', wire: 3 },
} as const satisfies Values;

/** Which hits are counted. */
export const chargeValues = {
  always: { resource: 'Always', wire: 1 },
  allowed: { resource: 'Allowed', wire: 2 },
} as const satisfies Values;

/** Policies for a counter store that fails. */
export const storeFailureValues = {
  allow: { resource: 'Allow', wire: 1 },
  deny: { resource: 'Deny', wire: 2 },
  local: { resource: 'Local', wire: 3 },
} as const satisfies Values;

/** The length of a fixed rate limit window, as rule files spell it. */
export type Unit = keyof typeof unitValues;

/** How requests are counted, as rule files spell it. */
export type Algorithm = keyof typeof algorithmValues;

/**
 * Which hits are counted: `always` also those of requests that are over the limit, such as usage
 * that is reported after the response; `allowed` only those of requests within it.
 */
export type Charge = keyof typeof chargeValues;

/**
 * How a limit is decided while the counter store fails. `local` counts in the process, with this
 * replica's share of the limit.
 */
export type StoreFailurePolicy = keyof typeof storeFailureValues;
