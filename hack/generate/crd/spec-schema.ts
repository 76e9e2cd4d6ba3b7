import {
  maxRequestsPerUnit,
  maxResourceDepth,
  type ResourceField,
  resourceAlgorithms,
  resourceCharges,
  resourceFields,
  resourceLists,
  resourceStoreFailures,
  resourceTexts,
  resourceUnits,
} from '@tollgate/rules/resource-shape';
import { flagSchema, type JsonSchema, mapList, misspellings, textSchema } from './json-schema.ts';

const replaced: Record<ResourceField<'replaced'>, JsonSchema> = {
  name: textSchema(resourceTexts.name, 'Name of a limit of the same domain.'),
};

const storeFailure = { type: 'string', enum: Object.keys(resourceStoreFailures) } as const;

const unnamed: Record<ResourceField<'limitRateLimit'>, JsonSchema> = {
  unit: {
    description:
      'Length of the window. Windows are fixed and start at the Unix epoch: a Month is 30 days, a Year 365.',
    type: 'string',
    enum: resourceUnits,
  },
  period: textSchema(
    resourceTexts.period,
    'Length of the window instead of unit, in whole seconds from 1s to 8784h.',
  ),
  timeZone: textSchema(
    resourceTexts.timeZone,
    'IANA name, such as Europe/Berlin. Windows of a Day, Week (from Monday), Month or Year follow the calendar there. For FixedWindow only.',
  ),
  requestsPerUnit: {
    description: 'Requests allowed in each window; 0 denies all.',
    type: 'integer',
    format: 'int64',
    minimum: 0,
    maximum: maxRequestsPerUnit,
  },
  algorithm: {
    description:
      'FixedWindow (default) counts in each window. SlidingWindow weights the previous window by its part in the last unit. TokenBucket refills continuously and lets through up to burst requests at once. Concurrency counts the requests in progress: each takes a slot until a refund releases it, or until the unit or period has passed.',
    type: 'string',
    enum: Object.keys(resourceAlgorithms),
  },
  burst: {
    description: 'Size of a TokenBucket: requests that may come at once. Default requestsPerUnit.',
    type: 'integer',
    format: 'int64',
    minimum: 1,
    maximum: maxRequestsPerUnit,
  },
  lease: textSchema(
    resourceTexts.lease,
    'For hot counters: the part of requestsPerUnit that each replica of the limiter reserves at once, and then counts without the store. Up to that part is refused too early for each other replica. For FixedWindow only.',
  ),
  charge: {
    description:
      'Which hits are counted. Always: also those of requests over the limit, for usage that is reported after the response (a check with 0 hits before). Allowed: only those of requests within it. Default Always for FixedWindow, Allowed for the others and with atomic.',
    type: 'string',
    enum: Object.keys(resourceCharges),
  },
  maxDebt: {
    description:
      'With charge Always, the hits that a TokenBucket or SlidingWindow may be charged beyond its limit; time pays them back. Default burst, or requestsPerUnit of a SlidingWindow.',
    type: 'integer',
    format: 'int64',
    minimum: 0,
    maximum: maxRequestsPerUnit,
  },
  onStoreFailure: {
    description:
      'Decides while the counter store fails: Allow, Deny, or Local, which counts in each limiter with its share of the limit. Default that of the spec.',
    ...storeFailure,
  },
  unlimited: flagSchema(
    'Allows all requests, instead of a limit. Use it to exempt a client from a broader rule.',
  ),
  replaces: mapList(
    ['name'],
    { type: 'object', required: ['name'], properties: replaced },
    {
      description:
        'Limits that do not apply to requests that match this one, such as the general limit of a customer with a specific one.',
      maxItems: resourceLists.replaces,
    },
  ),
};

const named: Record<ResourceField<'rateLimit'>, JsonSchema> = {
  ...unnamed,
  name: textSchema(
    resourceTexts.name,
    'Name by which other limits may replace this one. Envoy returns it in the x-ratelimit-limit header.',
  ),
};

/**
 * Without CEL, whose estimated cost would be multiplied by every level that lists are nested in.
 */
const unlimitedOrLimit: JsonSchema = {
  anyOf: [
    // First, because it is the first whose errors are shown when none holds.
    {
      required: ['unit', 'requestsPerUnit'],
      properties: { unlimited: { enum: [false] } },
      not: { required: ['period'] },
    },
    {
      required: ['period', 'requestsPerUnit'],
      properties: { unlimited: { enum: [false] } },
      not: { required: ['unit'] },
    },
    {
      required: ['unlimited'],
      properties: { unlimited: { enum: [true] } },
      not: {
        anyOf: ['unit', 'period', 'timeZone', 'requestsPerUnit'].map((name) => ({ required: [name] })),
      },
    },
  ],
};

const description = 'How many requests are allowed: requestsPerUnit and unit or period, or unlimited.';

/** `rateLimit` of a descriptor. */
const rateLimitSchema: JsonSchema = {
  description,
  type: 'object',
  properties: { ...named, ...misspellings(resourceFields.rateLimit, { replace: 'use replaces' }) },
  ...unlimitedOrLimit,
};

/** `rateLimit` of a limit, which is named outside of it. */
const limitRateLimitSchema: JsonSchema = {
  description,
  type: 'object',
  properties: {
    ...unnamed,
    ...misspellings(resourceFields.limitRateLimit, {
      replace: 'use replaces',
      name: 'use the name of the limit, outside of rateLimit',
    }),
  },
  ...unlimitedOrLimit,
};

const key = textSchema(
  resourceTexts.key,
  'Key of the entry of a request descriptor, as an action of Envoy makes it: remote_address, generic_key, header_match, or the descriptor_key of a header.',
);

const value = textSchema(
  resourceTexts.value,
  'Value of the entry. With * it is a pattern, each * standing for any run of characters. Without a value every value matches, and each has its own counter. An exact value goes before patterns, patterns go before no value.',
);

/** What makes one level of the tree, wherever it is written. */
const level = {
  key,
  value,
  valueToMetric: flagSchema(
    'The names of metrics contain the value of the request, if value is empty or a pattern.',
  ),
  shareThreshold: flagSchema(
    'All values that match the pattern share one counter. Without it each value has its own. Requires a value with *.',
  ),
};

/** What goes with a limit, wherever it is written. */
const behaviour = {
  shadowMode: flagSchema('Counts requests and reports metrics, but never denies: for testing a limit.'),
  quotaMode: flagSchema('A request is denied only when all quotas that it matches are exhausted.'),
  detailedMetric: flagSchema('The names of metrics contain the values of the request, on every level.'),
  metadata: {
    description:
      'JSON that the limiter adds to the dynamic metadata of its response, if enabled; it has no effect on limits.',
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
  },
} satisfies Record<string, JsonSchema>;

/** Without CEL, for its cost. @see unlimitedOrLimit */
const sharesOnlyPatterns: readonly JsonSchema[] = [
  { properties: { shareThreshold: { enum: [false] } } },
  { required: ['value'], properties: { value: { pattern: '\\*' } } },
];

/** What people write for a field of a descriptor or of a limit. */
const otherNames = {
  ratelimit: 'use rateLimit',
  rateLimits: 'use rateLimit',
  shadow: 'use shadowMode',
} as const;

/** Unrolled to its depth: schemas of Kubernetes cannot recurse. */
function descriptorsSchema(depth: number): JsonSchema {
  const isLast = depth === maxResourceDepth;
  const properties: Record<ResourceField<'descriptor'>, JsonSchema> = {
    ...level,
    ...behaviour,
    rateLimit: rateLimitSchema,
    descriptors: isLast ? tooDeep : descriptorsSchema(depth + 1),
  };
  const others = {
    ...otherNames,
    descriptor: 'use descriptors',
    limit: 'use rateLimit',
    limits: 'use rateLimit',
  };
  const items: JsonSchema = {
    type: 'object',
    required: ['key'],
    properties: { ...properties, ...misspellings(resourceFields.descriptor, others) },
    anyOf: sharesOnlyPatterns,
    // Kept, and refused in the status: dropped, a misspelled rateLimit would leave a descriptor
    // that limits nothing.
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const description =
    depth === 1
      ? `Tree of rules, up to 8 levels deep. A request descriptor is matched entry by entry, level by level, and limited by the rateLimit of the level that its last entry reaches; without one it is not limited. Instead of limits. ${refusedNames}`
      : 'Rules for the next entry of a request descriptor that has matched so far.';
  // Atomic: keys of a map list need defaults where they are not written, and with defaults in a
  // list each client-side apply finds a difference between the manifest and the object.
  return {
    description,
    type: 'array',
    maxItems: resourceLists.descriptors,
    'x-kubernetes-list-type': 'atomic',
    items,
  };
}

/** Said once, and not of each of the properties that refuse a name. */
const refusedNames =
  'Names of rule files (rate_limit, requests_per_unit, shadow_mode, …) and other spellings of fields are refused, and the error has the right one.';

const tooDeep: JsonSchema = {
  description: 'Always empty: the tree ends here.',
  type: 'array',
  maxItems: 0,
  items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
};

const match: Record<ResourceField<'match'>, JsonSchema> = level;

const limit: Record<ResourceField<'limit'>, JsonSchema> = {
  name: textSchema(
    resourceTexts.name,
    'Name of the limit, unique in this object, by which others may replace it. Envoy returns it in the x-ratelimit-limit header.',
  ),
  match: {
    description: 'All entries of the request descriptor that this limit applies to, in order.',
    type: 'array',
    minItems: 1,
    maxItems: resourceLists.match,
    'x-kubernetes-list-type': 'atomic',
    items: {
      type: 'object',
      required: ['key'],
      properties: { ...match, ...misspellings(resourceFields.match) },
      anyOf: sharesOnlyPatterns,
    },
  },
  rateLimit: limitRateLimitSchema,
  ...behaviour,
};

const limits = mapList(
  ['name'],
  {
    type: 'object',
    required: ['name', 'match', 'rateLimit'],
    properties: {
      ...limit,
      ...misspellings(resourceFields.limit, {
        ...otherNames,
        value_to_metric: 'use valueToMetric in an entry of match',
        valueToMetric: 'use valueToMetric in an entry of match',
        share_threshold: 'use shareThreshold in an entry of match',
        shareThreshold: 'use shareThreshold in an entry of match',
      }),
    },
  },
  {
    description: `The same rules as a flat list, each with the whole descriptor that it is for. Instead of descriptors. ${refusedNames}`,
    maxItems: resourceLists.limits,
  },
);

const spec: Record<ResourceField<'spec'>, JsonSchema> = {
  domain: {
    ...textSchema(
      resourceTexts.domain,
      'Domain of the rules, as in the rate limit filter of Envoy. Immutable.',
    ),
    'x-kubernetes-validations': [
      {
        rule: 'self == oldSelf',
        message:
          'domain cannot be changed: create another RateLimitConfig for the other domain and delete this one',
      },
    ],
  },
  descriptors: descriptorsSchema(1),
  limits,
  trial: flagSchema(
    'The rules are on trial: limiters compare them with the rules in force, and show what they would refuse. They refuse nothing. atomic and onStoreFailure of this object are then for the rules on trial only.',
  ),
  onStoreFailure: {
    description:
      'onStoreFailure of the limits of the domain that have none. Without it, the settings of the limiter decide.',
    ...storeFailure,
  },
  atomic: flagSchema(
    'A request is counted by all of its limits, or by none: what one limit refuses takes nothing from the others. Needs limiters with memory, one Redis, or Redis Sentinel.',
  ),
};

/** `spec` of a RateLimitConfig. */
export const specSchema: JsonSchema = {
  description: 'The rate limits of one domain: descriptors, or limits.',
  type: 'object',
  required: ['domain'],
  properties: spec,
  'x-kubernetes-validations': [
    {
      rule: 'has(self.descriptors) != has(self.limits)',
      message: 'set exactly one of descriptors and limits',
    },
  ],
};
