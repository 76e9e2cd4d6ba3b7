import { descriptorFields, domainFields, domainOptions, nameBounds, rows } from '@tollgate/rules/fields';
import {
  limiterClassBounds,
  matchFields,
  maxResourceDepth,
  resourceLists,
  ruleFields,
  unnamedLimitFields,
} from '@tollgate/rules/resource-shape';
import { requiredOf, schemasOf } from './field-schema.ts';
import { flagSchema, type JsonSchema, keepUnknown, mapList, textSchema } from './json-schema.ts';

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
  properties: schemasOf(rows.limit),
  ...unlimitedOrLimit,
  ...keepUnknown,
};

/** `rateLimit` of a limit, which is named outside of it. */
const limitRateLimitSchema: JsonSchema = {
  description,
  type: 'object',
  properties: schemasOf(unnamedLimitFields),
  ...unlimitedOrLimit,
  ...keepUnknown,
};

/** Without CEL, for its cost. @see unlimitedOrLimit */
const sharesOnlyPatterns: readonly JsonSchema[] = [
  { properties: { shareThreshold: { enum: [false] } } },
  { required: ['value'], properties: { value: { pattern: '\\*' } } },
];

/** Unrolled to its depth: schemas of Kubernetes cannot recurse. */
function descriptorsSchema(depth: number): JsonSchema {
  const isLast = depth === maxResourceDepth;
  const properties: Record<string, JsonSchema> = {
    ...schemasOf([...matchFields, ...ruleFields]),
    rateLimit: rateLimitSchema,
    descriptors: isLast ? tooDeep : descriptorsSchema(depth + 1),
  };
  const items: JsonSchema = {
    type: 'object',
    required: requiredOf(rows.descriptor),
    properties,
    anyOf: sharesOnlyPatterns,
    ...keepUnknown,
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

const refusedNames =
  'Unknown fields, such as the names of rule files (rate_limit, requests_per_unit), are refused, and the error suggests the right one.';

const tooDeep: JsonSchema = {
  description: 'Always empty: the tree ends here.',
  type: 'array',
  maxItems: 0,
  items: { type: 'object', ...keepUnknown },
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
      properties: schemasOf(matchFields),
      anyOf: sharesOnlyPatterns,
      ...keepUnknown,
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
    properties: limit,
    ...keepUnknown,
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
  ...keepUnknown,
  'x-kubernetes-validations': [
    {
      rule: 'has(self.descriptors) != has(self.limits)',
      message: 'set exactly one of descriptors and limits',
    },
  ],
};
