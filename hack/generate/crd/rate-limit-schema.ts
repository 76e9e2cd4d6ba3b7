import {
  maxRequestsPerUnit,
  type ResourceField,
  resourceFields,
  resourceLists,
  resourceTexts,
  resourceUnits,
} from '@tollgate/rules/resource-shape';
import { flagSchema, type JsonSchema, mapList, textSchema } from './json-schema.ts';
import { misspellings } from './misspellings.ts';

const replaced: Record<ResourceField<'replaced'>, JsonSchema> = {
  name: textSchema(resourceTexts.name, 'Name of a limit of the same domain.'),
};

const unnamed: Record<ResourceField<'limitRateLimit'>, JsonSchema> = {
  unit: {
    description:
      'Length of the window. Windows are fixed and start at the Unix epoch: a Month is 30 days, a Year 365.',
    type: 'string',
    enum: resourceUnits,
  },
  requestsPerUnit: {
    description: 'Requests allowed in each window; 0 refuses all.',
    type: 'integer',
    format: 'int64',
    minimum: 0,
    maximum: maxRequestsPerUnit,
  },
  unlimited: flagSchema(
    'Allows all requests, instead of unit and requestsPerUnit. Use it to exempt a client from a broader rule.',
  ),
  replaces: mapList(
    ['name'],
    { type: 'object', required: ['name'], properties: replaced },
    {
      description:
        'Limits that do not count for a request which this one matches, such as the ordinary limit of a customer who has a special one.',
      maxItems: resourceLists.replaces,
    },
  ),
};

const named: Record<ResourceField<'rateLimit'>, JsonSchema> = {
  ...unnamed,
  name: textSchema(
    resourceTexts.name,
    'Name by which other limits may replace this one. Envoy tells it to callers in the x-ratelimit-limit header.',
  ),
};

/** Without CEL, whose estimated cost would be multiplied by every level that lists are nested in. */
const unlimitedOrBoth: JsonSchema = {
  anyOf: [
    // First, because it is the first whose errors are shown when neither holds.
    { required: ['unit', 'requestsPerUnit'], properties: { unlimited: { enum: [false] } } },
    {
      required: ['unlimited'],
      properties: { unlimited: { enum: [true] } },
      not: { anyOf: [{ required: ['unit'] }, { required: ['requestsPerUnit'] }] },
    },
  ],
};

const description = 'How many requests are allowed: unit and requestsPerUnit, or unlimited.';

/** `rateLimit` of a descriptor. */
export const rateLimitSchema: JsonSchema = {
  description,
  type: 'object',
  properties: { ...named, ...misspellings(resourceFields.rateLimit, { replace: 'use replaces' }) },
  ...unlimitedOrBoth,
};

/** `rateLimit` of a limit, which is named outside of it. */
export const limitRateLimitSchema: JsonSchema = {
  description,
  type: 'object',
  properties: {
    ...unnamed,
    ...misspellings(resourceFields.limitRateLimit, {
      replace: 'use replaces',
      name: 'use the name of the limit, outside of rateLimit',
    }),
  },
  ...unlimitedOrBoth,
};
