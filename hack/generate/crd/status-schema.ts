import type { JsonSchema } from './json-schema.ts';

const counter = (description: string): JsonSchema => ({
  description,
  type: 'integer',
  format: 'int32',
  minimum: 0,
});

/** A metav1.Condition, with the bounds of the original. */
const condition: JsonSchema = {
  type: 'object',
  required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
  properties: {
    type: {
      description:
        'Accepted: the rules are valid and the domain is theirs. Programmed: every connected limiter has acknowledged them. Ready: both, for tools that wait for an object (kstatus).',
      type: 'string',
      minLength: 1,
      maxLength: 316,
    },
    status: { description: 'True, False or Unknown.', type: 'string', enum: ['True', 'False', 'Unknown'] },
    reason: {
      description:
        'Accepted: Accepted, Invalid, DuplicateKey, DomainConflict. Programmed: Acknowledged, Pending, Nacked, NotAccepted, NoClients. Ready: Enforced, or that of the condition that it waits for.',
      type: 'string',
      minLength: 1,
      maxLength: 1024,
      pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
    },
    message: { description: 'What is wrong and where, for people.', type: 'string', maxLength: 32_768 },
    lastTransitionTime: { description: 'When status last changed.', type: 'string', format: 'date-time' },
    observedGeneration: {
      description: 'Generation of the object that the condition is about.',
      type: 'integer',
      format: 'int64',
      minimum: 0,
    },
  },
};

/** `status` of a RateLimitConfig, which the xDS server writes. */
export const statusSchema: JsonSchema = {
  description: 'What has become of the rules; written by the xDS server.',
  type: 'object',
  properties: {
    observedGeneration: {
      description: 'Generation of the object that was judged last.',
      type: 'integer',
      format: 'int64',
      minimum: 0,
    },
    rules: counter('Limits of this object that are in force.'),
    version: {
      description: 'Version of the rules of the domain, as limiters acknowledge it.',
      type: 'string',
      maxLength: 128,
    },
    limiters: {
      description: 'The limiters that get their rules from the xDS server.',
      type: 'object',
      properties: {
        connected: counter('Limiters that are connected.'),
        acknowledged: counter('Those of them that have the rules of this object in force.'),
      },
    },
    domainOwner: {
      description: 'Namespace that the domain belongs to, or is kept for, where that is another one.',
      type: 'string',
      maxLength: 63,
    },
    conditions: {
      description: 'Accepted, Programmed and Ready.',
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: condition,
    },
  },
};
