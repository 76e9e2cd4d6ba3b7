import { descriptorFields, domainFields, domainOptions, nameBounds, rows } from '@tollgate/rules/fields';
import {
  limiterClassBounds,
  matchFields,
  maxResourceDepth,
  resourceFields,
  resourceLists,
  ruleFields,
  unnamedLimitFields,
} from '@tollgate/rules/resource-shape';
import { requiredOf, schemasOf } from './field-schema.ts';
import { flagSchema, type JsonSchema, mapList, misspellings, textSchema } from './json-schema.ts';

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

const { description } = descriptorFields.rateLimit;

/** `rateLimit` of a descriptor. */
const rateLimitSchema: JsonSchema = {
  description,
  type: 'object',
  properties: {
    ...schemasOf(rows.limit),
    ...misspellings(resourceFields.rateLimit, { replace: 'use replaces' }),
  },
  ...unlimitedOrLimit,
};

/** `rateLimit` of a limit, which is named outside of it. */
const limitRateLimitSchema: JsonSchema = {
  description,
  type: 'object',
  properties: {
    ...schemasOf(unnamedLimitFields),
    ...misspellings(resourceFields.limitRateLimit, {
      replace: 'use replaces',
      name: 'use the name of the limit, outside of rateLimit',
    }),
  },
  ...unlimitedOrLimit,
};

/** Without CEL, for its cost. @see unlimitedOrLimit */
const sharesOnlyPatterns: readonly JsonSchema[] = [
  { properties: { shareThreshold: { enum: [false] } } },
  { required: ['value'], properties: { value: { pattern: '\\*' } } },
];

/** Names that people write for a field of a descriptor or of a limit. */
const otherNames = {
  ratelimit: 'use rateLimit',
  rateLimits: 'use rateLimit',
  shadow: 'use shadowMode',
} as const;

/** Unrolled to its depth: schemas of Kubernetes cannot recurse. */
function descriptorsSchema(depth: number): JsonSchema {
  const isLast = depth === maxResourceDepth;
  const properties: Record<string, JsonSchema> = {
    ...schemasOf([...matchFields, ...ruleFields]),
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
    required: requiredOf(rows.descriptor),
    properties: { ...properties, ...misspellings(resourceFields.descriptor, others) },
    anyOf: sharesOnlyPatterns,
    // Kept, and refused in the status: dropped, a misspelled rateLimit would leave a descriptor
    // that limits nothing.
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const description =
    depth === 1
      ? `${domainFields.descriptors.description} Instead of limits. ${refusedNames}`
      : descriptorFields.descriptors.description;
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

const limit: Record<string, JsonSchema> = {
  name: textSchema(
    nameBounds,
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
      required: requiredOf(matchFields),
      properties: { ...schemasOf(matchFields), ...misspellings(resourceFields.match) },
      anyOf: sharesOnlyPatterns,
    },
  },
  rateLimit: limitRateLimitSchema,
  ...schemasOf(ruleFields),
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

const spec: Record<string, JsonSchema> = {
  domain: {
    ...textSchema(domainFields.domain.bounds, domainFields.domain.description),
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
  limiterClassName: textSchema(
    limiterClassBounds,
    'Only limiters of this class (CONFIG_GRPC_XDS_LIMITER_CLASS) get the rules, instead of those of objects without a class for the domain. By default all limiters get them, and Programmed waits for limiters without a class.',
  ),
  ...schemasOf(domainOptions),
};

/** `spec` of a RateLimitConfig. */
export const specSchema: JsonSchema = {
  description: 'The rate limits of one domain: descriptors, or limits.',
  type: 'object',
  required: requiredOf(rows.domain),
  properties: spec,
  'x-kubernetes-validations': [
    {
      rule: 'has(self.descriptors) != has(self.limits)',
      message: 'set exactly one of descriptors and limits',
    },
  ],
};
