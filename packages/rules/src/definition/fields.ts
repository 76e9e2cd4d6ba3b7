import { durationPattern } from '@tollgate/kit/time';
import {
  type Algorithm,
  algorithmValues,
  chargeValues,
  storeFailureValues,
  unitValues,
  type Values,
} from './values.ts';

/** Bounds of a text, in Unicode characters, and its form where it has one. */
export interface TextBounds {
  readonly min: number;
  readonly max: number;
  readonly pattern?: RegExp;
  /** Description of the pattern. */
  readonly form?: string;
}

/** One field of the rule language; its name in a RateLimitConfig is its key in the table. */
interface Row {
  /** Key in rule files. */
  readonly file: string;
  /** Number in the message that xDS servers send. */
  readonly wire: number;
  /** Number of an option of the domain for its rules on trial. */
  readonly trialWire?: number;
  /**
   * The CRD and the tables of the documentation have this text, in the words of a RateLimitConfig.
   */
  readonly description: string;
  /** Section of the documentation. */
  readonly link?: string;
  /** Algorithms that have the field; all of them when absent. */
  readonly algorithms?: readonly Algorithm[];
  /** A limit with `unlimited` may have the field. */
  readonly withUnlimited?: true;
  /** Every spec has the field: empty or 0 when it is absent. */
  readonly always?: true;
  /** Part of the flat `limits` of a RateLimitConfig that has the field of a descriptor. */
  readonly part?: 'match' | 'limit';
}

interface TextRow extends Row {
  readonly kind: 'text';
  readonly bounds: TextBounds;
}

/** A percentage of `requestsPerUnit`: a text such as `5%`, and a number on the wire. */
interface PercentRow extends Row {
  readonly kind: 'percent';
  readonly bounds: TextBounds & Required<Pick<TextBounds, 'pattern' | 'form'>>;
}

/** One of a set of values; rule files may have them in any case. */
interface ChoiceRow extends Row {
  readonly kind: 'choice';
  readonly values: Values;
}

interface FlagRow extends Row {
  readonly kind: 'flag';
}

/** A whole number. Readers accept numbers from 0, and compiling compares them with `min`. */
interface CountRow extends Row {
  readonly kind: 'count';
  readonly min: number;
  readonly max: number;
  /** 0 differs from an absent field, also on the wire. */
  readonly optional?: true;
}

/** A list of objects with the name of a limit. */
interface NamesRow extends Row {
  readonly kind: 'names';
  readonly maxItems: number;
}

/** A JSON object, or a part of the language that has rows of its own. */
interface NestedRow extends Row {
  readonly kind: 'json' | 'limit' | 'descriptors';
}

/** A row of the table. */
type Field = TextRow | PercentRow | ChoiceRow | FlagRow | CountRow | NamesRow | NestedRow;

/** A row with its key in the table. */
export type NamedField = Field & { readonly name: string };

type Fields = Readonly<Record<string, Field>>;

/** Maximum of one window: a uint32. */
const maxUint32 = 4_294_967_295;

/**
 * Names of limits have the form of Kubernetes labels, because they appear in response headers and
 * messages.
 */
export const nameBounds: TextBounds = {
  min: 1,
  max: 63,
  pattern: /^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/,
  form: 'letters, digits, - _ . between them',
};

/** Fields of a domain: beside `domain` in a rule file, in the `spec` of a RateLimitConfig. */
export const domainFields = {
  /** May be empty, which compiling reports. */
  domain: {
    file: 'domain',
    wire: 2,
    kind: 'text',
    // Length of a DNS name.
    bounds: { min: 1, max: 253 },
    always: true,
    description: 'Domain of the rules, as in the rate limit filter of Envoy. Immutable.',
  },
  descriptors: {
    file: 'descriptors',
    wire: 3,
    kind: 'descriptors',
    description:
      'Tree of rules, up to 8 levels deep. A request descriptor is matched entry by entry, level by level, and limited by the rateLimit of the level that its last entry reaches; without one it is not limited.',
  },
  /** The policy of limits that have none, as written, in any case. */
  onStoreFailure: {
    file: 'on_store_failure',
    wire: 1002,
    trialWire: 1004,
    kind: 'choice',
    values: storeFailureValues,
    link: 'counter-stores.md#when-the-store-fails',
    description:
      'onStoreFailure of the limits of the domain that have none. Without it, the settings of the limiter decide.',
  },
  /** A request is counted by all of its limits, or by none. */
  atomic: {
    file: 'atomic',
    wire: 1001,
    trialWire: 1003,
    kind: 'flag',
    link: 'limits.md#all-or-nothing',
    description:
      'A request is counted by all of its limits, or by none: what one limit refuses takes nothing from the others. Needs limiters with memory, one Redis, or Redis Sentinel.',
  },
} as const satisfies Fields;

/** Fields of an entry of `descriptors`. */
export const descriptorFields = {
  key: {
    file: 'key',
    wire: 1,
    kind: 'text',
    bounds: { min: 1, max: 253 },
    always: true,
    part: 'match',
    description:
      'Key of the entry of a request descriptor, as an action of Envoy makes it: remote_address, generic_key, header_match, or the descriptor_key of a header.',
  },
  value: {
    file: 'value',
    wire: 2,
    kind: 'text',
    // Paths and tokens are that long.
    bounds: { min: 0, max: 1024 },
    part: 'match',
    description:
      'Value of the entry. With * it is a pattern, each * standing for any run of characters. Without a value every value matches, and each has its own counter. An exact value goes before patterns, patterns go before no value.',
  },
  rateLimit: {
    file: 'rate_limit',
    wire: 3,
    kind: 'limit',
    part: 'limit',
    description: 'How many requests are allowed: requestsPerUnit and unit or period, or unlimited.',
  },
  descriptors: {
    file: 'descriptors',
    wire: 4,
    kind: 'descriptors',
    description: 'Rules for the next entry of a request descriptor that has matched so far.',
  },
  shadowMode: {
    file: 'shadow_mode',
    wire: 5,
    kind: 'flag',
    part: 'limit',
    description: 'Counts requests and reports metrics, but never denies: for testing a limit.',
  },
  quotaMode: {
    file: 'quota_mode',
    wire: 7,
    kind: 'flag',
    part: 'limit',
    description: 'A request is denied only when all quotas that it matches are exhausted.',
  },
  detailedMetric: {
    file: 'detailed_metric',
    wire: 6,
    kind: 'flag',
    part: 'limit',
    description: 'The names of metrics contain the values of the request, on every level.',
  },
  valueToMetric: {
    file: 'value_to_metric',
    wire: 1000,
    kind: 'flag',
    part: 'match',
    description: 'The names of metrics contain the value of the request, if value is empty or a pattern.',
  },
  shareThreshold: {
    file: 'share_threshold',
    wire: 1001,
    kind: 'flag',
    part: 'match',
    description:
      'All values that match the pattern share one counter. Without it each value has its own. Requires a value with *.',
  },
  metadata: {
    file: 'metadata',
    wire: 8,
    kind: 'json',
    part: 'limit',
    description:
      'JSON that the limiter adds to the dynamic metadata of its response, if enabled; it has no effect on limits.',
  },
} as const satisfies Fields;

/** Fields of a `rateLimit`. */
export const limitFields = {
  /** The unit as written, in any case. */
  unit: {
    file: 'unit',
    wire: 1,
    kind: 'choice',
    values: unitValues,
    withUnlimited: true,
    description:
      'Length of the window. Windows are fixed and start at the Unix epoch: a Month is 30 days, a Year 365.',
  },
  /**
   * Replaces `unit`, and is kept as written: `5m`. Whether it is possible is checked with the
   * rules.
   */
  period: {
    file: 'period',
    wire: 1002,
    kind: 'text',
    bounds: {
      min: 1,
      max: 64,
      pattern: new RegExp(durationPattern),
      form: 'a duration such as 90s, 5m or 36h',
    },
    description: 'Length of the window instead of unit, in whole seconds from 1s to 8784h.',
  },
  /** The name as written; windows start at the epoch when missing. */
  timeZone: {
    file: 'time_zone',
    wire: 1003,
    kind: 'text',
    bounds: { min: 1, max: 64 },
    algorithms: ['fixed_window'],
    link: 'limits.md#windows',
    description:
      'IANA name, such as Europe/Berlin. Windows of a Day, Week (from Monday), Month or Year follow the calendar there.',
  },
  /** 0, also when missing, refuses every request. */
  requestsPerUnit: {
    file: 'requests_per_unit',
    wire: 2,
    kind: 'count',
    min: 0,
    max: maxUint32,
    always: true,
    withUnlimited: true,
    description: 'Requests allowed in each window; 0 denies all.',
  },
  unlimited: {
    file: 'unlimited',
    wire: 3,
    kind: 'flag',
    withUnlimited: true,
    description: 'Allows all requests, instead of a limit. Use it to exempt a client from a broader rule.',
  },
  /** The name as written, in any case; a fixed window when missing. */
  algorithm: {
    file: 'algorithm',
    wire: 1000,
    kind: 'choice',
    values: algorithmValues,
    link: 'limits.md',
    description:
      'FixedWindow (default) counts in each window. SlidingWindow weights the previous window by its part in the last unit. TokenBucket refills continuously and lets through up to burst requests at once. Concurrency counts the requests in progress: each takes a slot until a refund releases it, or until the unit or period has passed.',
  },
  /** `requestsPerUnit` when missing. */
  burst: {
    file: 'burst',
    wire: 1001,
    kind: 'count',
    min: 1,
    max: maxUint32,
    algorithms: ['token_bucket'],
    description: 'Size of a TokenBucket: requests that may come at once. Default requestsPerUnit.',
  },
  /** As written: `5%`. */
  lease: {
    file: 'lease',
    wire: 1005,
    kind: 'percent',
    bounds: { min: 2, max: 3, pattern: /^([1-9]|[1-4][0-9]|50)%$/, form: 'a percentage from 1% to 50%' },
    algorithms: ['fixed_window'],
    link: 'limits.md#hot-keys',
    description:
      'For hot counters: the part of requestsPerUnit that each replica of the limiter reserves at once, and then counts without the store. Up to that part is refused too early for each other replica.',
  },
  /** The value as written, in any case; the default depends on the algorithm and the domain. */
  charge: {
    file: 'charge',
    wire: 1006,
    kind: 'choice',
    values: chargeValues,
    link: 'limits.md#usage-after-the-response',
    description:
      'Which hits are counted. Always: also those of requests over the limit, for usage that is reported after the response (a check with 0 hits before). Allowed: only those of requests within it. Default Always for FixedWindow, Allowed for the others and with atomic.',
  },
  /** With `charge: always`; `burst` when missing. */
  maxDebt: {
    file: 'max_debt',
    wire: 1007,
    kind: 'count',
    min: 0,
    max: maxUint32,
    optional: true,
    algorithms: ['token_bucket', 'sliding_window'],
    description:
      'With charge Always, the hits that a TokenBucket or SlidingWindow may be charged beyond its limit; time pays them back. Default burst, or requestsPerUnit of a SlidingWindow.',
  },
  /** The policy as written, in any case; that of the domain when missing. */
  onStoreFailure: {
    file: 'on_store_failure',
    wire: 1004,
    kind: 'choice',
    values: storeFailureValues,
    link: 'counter-stores.md#when-the-store-fails',
    description:
      'Decides while the counter store fails: Allow, Deny, or Local, which counts in each limiter with its share of the limit. Default that of the spec.',
  },
  /** Names of the limits that this one replaces. */
  replaces: {
    file: 'replaces',
    wire: 5,
    kind: 'names',
    maxItems: 16,
    withUnlimited: true,
    description:
      'Limits that do not apply to requests that match this one, such as the general limit of a customer with a specific one.',
  },
  name: {
    file: 'name',
    wire: 4,
    kind: 'text',
    bounds: nameBounds,
    withUnlimited: true,
    description:
      'Name by which other limits may replace this one. Envoy returns it in the x-ratelimit-limit header.',
  },
} as const satisfies Fields;

/** A row of a part, whose keys in rule files are known. */
type FieldOf<Part extends Fields> = NamedField & { readonly file: Part[keyof Part]['file'] };

/** The rows of a part of the language, in order. */
const listFields = <Part extends Fields>(part: Part): readonly FieldOf<Part>[] =>
  Object.entries(part).map(([name, field]) => ({ name, ...field })) as FieldOf<Part>[]; // rows of the part

/** The rows of each part. */
export const rows = {
  domain: listFields(domainFields),
  descriptor: listFields(descriptorFields),
  limit: listFields(limitFields),
} as const;

/** Options of a whole domain. */
export const domainOptions = rows.domain.filter(
  ({ name, kind }) => name !== 'domain' && kind !== 'descriptors',
);
