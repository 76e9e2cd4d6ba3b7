/** Fields of rules: their keys in rule files, and their names in a RateLimitConfig. */
export const resourceNames = {
  domain: 'domain',
  key: 'key',
  value: 'value',
  descriptors: 'descriptors',
  rate_limit: 'rateLimit',
  unit: 'unit',
  period: 'period',
  time_zone: 'timeZone',
  requests_per_unit: 'requestsPerUnit',
  unlimited: 'unlimited',
  algorithm: 'algorithm',
  burst: 'burst',
  lease: 'lease',
  charge: 'charge',
  max_debt: 'maxDebt',
  on_store_failure: 'onStoreFailure',
  atomic: 'atomic',
  shadow_mode: 'shadowMode',
  quota_mode: 'quotaMode',
  name: 'name',
  replaces: 'replaces',
  detailed_metric: 'detailedMetric',
  value_to_metric: 'valueToMetric',
  share_threshold: 'shareThreshold',
  metadata: 'metadata',
} as const;

/** A key of a rule file. */
export type FieldName = keyof typeof resourceNames;

/** Values of fields: in rule files, and in a RateLimitConfig, as Kubernetes spells enumerations. */
export const resourceValues = {
  second: 'Second',
  minute: 'Minute',
  hour: 'Hour',
  day: 'Day',
  week: 'Week',
  month: 'Month',
  year: 'Year',
  fixed_window: 'FixedWindow',
  sliding_window: 'SlidingWindow',
  token_bucket: 'TokenBucket',
  concurrency: 'Concurrency',
  always: 'Always',
  allowed: 'Allowed',
  allow: 'Allow',
  deny: 'Deny',
  local: 'Local',
} as const;

/** How messages spell fields and values: as the document does that they are about. */
export type Spelling = Readonly<Record<FieldName | keyof typeof resourceValues, string>>;

/** The spelling of RateLimitConfig objects. */
export const resourceSpelling: Spelling = { ...resourceNames, ...resourceValues };

/** The spelling of rule files. */
export const fileSpelling: Spelling = Object.fromEntries(
  Object.keys(resourceSpelling).map((term) => [term, term]),
) as Spelling; // of exactly these keys
