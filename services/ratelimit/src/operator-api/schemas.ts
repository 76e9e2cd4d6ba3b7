import { count, flag, list, object, ref, type Schema, text, time } from '@tollgate/kit/json-schema';
import { serviceSettingsSchema } from '@tollgate/kit/start-report';

const seconds = { type: 'integer', minimum: 0, description: 'Seconds.' };
const entries = list(ref('Entry'));
const described = { domain: text, descriptors: list(ref('Descriptor')) };
const ofRule = { requestsPerUnit: count, unit: text };
const describedLimit = {
  rule: text,
  name: text,
  algorithm: { enum: ['fixed_window', 'sliding_window', 'token_bucket', 'concurrency'] },
  ...ofRule,
  burst: count,
  shadowMode: flag,
};
const hitCounts = { hits: count, nearLimit: count, overLimit: count };
const next = { ...text, description: '`after` of the next page. Absent on the last one.' };
const percent = { type: 'number', minimum: 0, maximum: 100 };
const comparedCounts = {
  requests: count,
  wouldRefuse: count,
  refused: count,
  newlyRefused: count,
  newlyAllowed: count,
  wouldRefusePercent: percent,
  refusedPercent: percent,
};

/** The bodies of requests and responses, by their names in the OpenAPI document. */
export const schemas = {
  ServiceSettings: serviceSettingsSchema,
  Entry: object({ key: text, value: text }),
  Descriptor: {
    ...object({ entries }),
    description: 'A RateLimitDescriptor of Envoy in proto3 JSON; `limit` and `hitsAddend` are possible, too.',
    additionalProperties: true,
  },
  RateLimitRequest: {
    ...object(described),
    description:
      'A RateLimitRequest of Envoy in proto3 JSON, with at most 100 descriptors; `hitsAddend` is possible, too.',
    additionalProperties: true,
  },
  PeekListRequest: object({ requests: list(ref('RateLimitRequest')) }),
  OverrideRequest: object(
    {
      ...described,
      requestsPerUnit: count,
      burst: { ...count, description: 'Of a token bucket.' },
      ttlSeconds: { type: 'integer', minimum: 1, maximum: 2_678_400 },
      reason: { type: 'string', minLength: 1, maxLength: 200 },
    },
    { optional: ['burst'] },
  ),
  ResetRequest: {
    oneOf: [ref('RateLimitRequest'), ref('PrefixRequest')],
  },
  PrefixRequest: object({ domain: text, prefix: list(ref('PrefixEntry')) }),
  PrefixEntry: {
    ...object({ key: text, value: text }, { optional: ['value'] }),
    description: 'Only the last entry may be without a value.',
  },
  ReservationRequest: object(
    {
      ...described,
      hits: { type: 'integer', minimum: 1 },
      ttlSeconds: { type: 'integer', minimum: 1, maximum: 86_400, default: 60 },
    },
    { optional: ['ttlSeconds'] },
  ),
  CommitRequest: object({ id: text, hits: count }),

  Override: object(
    {
      domain: text,
      entries,
      requestsPerUnit: count,
      burst: count,
      until: time,
      reason: text,
      setBy: { ...text, description: 'The caller who set it.' },
    },
    { optional: ['burst'] },
  ),
  OverrideList: object({ overrides: list(ref('Override')), next }, { optional: ['next'] }),
  Counted: { ...object({ domain: text, entries }), description: 'The entries of the counter.' },
  Counter: object(
    {
      ...describedLimit,
      key: { ...text, description: 'The key in the store.' },
      count: { type: 'integer' },
      remaining: count,
      over: { ...flag, description: 'The hits of the request exceed the limit now.' },
      resetSeconds: seconds,
      warning: text,
      override: ref('Override'),
    },
    { optional: ['name', 'burst', 'warning', 'override'] },
  ),
  Peek: object({
    domain: text,
    descriptors: list(
      object(
        { entries, outcome: { enum: ['limited', 'unlimited', 'none'] }, counter: ref('Counter') },
        { optional: ['counter'] },
      ),
    ),
    wouldBeRefused: flag,
  }),
  PeekList: {
    ...object({ peeks: list(ref('Peek')) }),
    description: 'One for each request, in the same order.',
  },
  Reset: {
    oneOf: [
      object({ domain: text, counters: list(object({ key: text, count: { type: 'integer' } })) }),
      object({ domain: text, prefixes: list(text), deleted: count }),
    ],
  },
  Reservation: object({ domain: text, id: text, until: time }),
  Commit: object({ domain: text, reserved: count, hits: count, over: flag }),
  TopKeys: object({
    seconds,
    maxMissedHits: { ...count, description: 'Each key may have had as many more hits.' },
    keys: list(object({ domain: text, entries, hits: count })),
  }),
  KeysOfHour: object({
    since: { ...time, description: 'Beginning of the first minute.' },
    complete: { ...flag, description: 'False when keys were left out, since there were too many.' },
    keys: list(
      object(
        {
          domain: text,
          entries,
          ...describedLimit,
          fromRequest: { ...flag, description: 'The request brought the limit, and no rule.' },
          override: ref('Override'),
          hits: { ...list(count), description: 'Hits of each minute, refused ones included.' },
          refused: { ...list(count), description: 'Hits of each minute that this limit refused.' },
          peakSecond: { ...list(count), description: 'Most hits in a second of each minute.' },
          missed: {
            ...list(count),
            description:
              'Hits of each minute that may be missing, of each of the three. Former versions do not report it.',
          },
        },
        { optional: ['name', 'burst', 'override', 'missed'] },
      ),
    ),
  }),
  RefusalList: object({
    refusals: list(
      object({
        time,
        domain: text,
        entries,
        rule: text,
        ...ofRule,
        hits: count,
        code: { enum: ['OK', 'OVER_LIMIT'], description: 'The code of the request.' },
      }),
    ),
  }),
  DomainList: object(
    { domains: list(object({ domain: text, limits: count, ...hitCounts })), next },
    { optional: ['next'] },
  ),
  LimitList: object({ limits: list(ref('ListedLimit')), next }, { optional: ['next'] }),
  ListedLimit: object(
    {
      domain: text,
      path: { ...text, description: 'Path of the rule, which begins with its domain.' },
      ...describedLimit,
      quotaMode: flag,
      counts: {
        ...object(hitCounts),
        description: 'Absent without hits, and where the metrics of the rule have values of requests.',
      },
    },
    { optional: ['name', 'burst', 'counts'] },
  ),
  Trial: object(
    {
      trial: object({ version: text, since: time, domains: count, rules: count }),
      notCompared: object({ dropped: count, failed: count }),
      domains: list(object({ domain: text, ...comparedCounts })),
      rules: list(object({ domain: text, rule: text, limit: text, ...comparedCounts })),
    },
    { optional: ['trial'] },
  ),
  Error: object(
    {
      code: { ...text, description: 'Stable; docs/errors.md lists them.' },
      message: text,
      retryAfterSeconds: seconds,
    },
    { optional: ['retryAfterSeconds'] },
  ),
} as const satisfies Record<string, Schema>;

export type SchemaName = keyof typeof schemas;
