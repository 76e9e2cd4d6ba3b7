import { resourceGroup, resourceKind, resourceVersion } from '@tollgate/rules/resource-shape';
import type { JsonSchema } from './json-schema.ts';
import { conditionColumn, renderDefinition } from './manifest.ts';
import { specSchema } from './spec-schema.ts';

const counter = (description: string): JsonSchema => ({
  description,
  type: 'integer',
  format: 'int32',
  minimum: 0,
});

/** A metav1.Condition, with the bounds of the original. */
export const conditionSchema = (types: string, reasons?: string): JsonSchema => ({
  type: 'object',
  required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
  properties: {
    type: {
      description: types,
      type: 'string',
      minLength: 1,
      maxLength: 316,
    },
    status: { description: 'True, False or Unknown.', type: 'string', enum: ['True', 'False', 'Unknown'] },
    reason: {
      description: reasons ?? 'Reason of the status, in one word.',
      type: 'string',
      minLength: 1,
      maxLength: 1024,
      pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
    },
    message: {
      description: 'What is wrong and where, in human-readable form.',
      type: 'string',
      maxLength: 32_768,
    },
    lastTransitionTime: { description: 'When status last changed.', type: 'string', format: 'date-time' },
    observedGeneration: {
      description: 'Generation of the object that the condition applies to.',
      type: 'integer',
      format: 'int64',
      minimum: 0,
    },
  },
});

const condition = conditionSchema(
  'Accepted: the rules are valid and the namespace owns the domain. Programmed: all connected limiters have acknowledged them; limiters that join later get them before they are ready. Ready: both, for tools that wait for an object (kstatus). Matched: requests have matched every rule; False names rules that never matched, which may be misspelled. Only while True: Reconciling, until limiters acknowledge; Stalled, until the object is changed.',
  'Accepted: Accepted, OnTrial, Invalid, DuplicateKey, DomainConflict, DomainNotAllowed. Programmed: Acknowledged, Pending, Nacked, NotAccepted, NoClients. Ready: Enforced, OnTrial, or that of the condition that it waits for. Matched: AllMatched, NeverMatched, Observing.',
);

/** The copy of the newest valid spec. */
export const lastValidSchema: JsonSchema = {
  description:
    'The newest valid version of the spec, which stays in force, also after restarts of the xDS server, while the current one is invalid.',
  type: 'object',
  required: ['generation', 'spec'],
  properties: {
    generation: {
      description: 'Generation of the object that had this spec.',
      type: 'integer',
      format: 'int64',
      minimum: 1,
    },
    spec: {
      description: 'The spec as JSON, compressed with gzip, in base64.',
      type: 'string',
      maxLength: 400_000,
    },
  },
};

/** `status` of a RateLimitConfig, which the xDS server writes. */
export const statusSchema: JsonSchema = {
  description: 'Observed state of the rules; written by the xDS server.',
  type: 'object',
  // A new object is not current before the xDS server has seen it, as tools such as Flux expect.
  default: { observedGeneration: -1 },
  properties: {
    observedGeneration: {
      description: 'Generation of the object that was validated last; -1 for none.',
      type: 'integer',
      format: 'int64',
      minimum: -1,
    },
    rules: counter('Limits of this object in force, or on trial.'),
    version: {
      description: 'Version of the rules of the domain, as acknowledged by limiters.',
      type: 'string',
      maxLength: 128,
    },
    limiters: {
      description:
        'Deprecated, and no longer written: the ConfigMap tollgate-xds-limiters, the admin page and metrics have the numbers of limiters.',
      type: 'object',
      properties: {
        connected: counter('Connected limiters.'),
        acknowledged: counter('Connected limiters that enforce the rules of this object.'),
      },
    },
    domainOwner: {
      description: 'Namespace that the domain belongs to or is reserved for, if it is another one.',
      type: 'string',
      maxLength: 63,
    },
    lastValid: lastValidSchema,
    conditions: {
      description: 'Accepted, Programmed, Ready and Matched; Reconciling or Stalled while they are True.',
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: condition,
    },
  },
};

/** The manifest of the CRD. */
export const renderCrd = (): string =>
  renderDefinition({
    ...{ group: resourceGroup, kind: resourceKind, version: resourceVersion },
    ...{ plural: 'ratelimitconfigs', singular: 'ratelimitconfig', shortName: 'rlc' },
    selectableFields: [{ jsonPath: '.spec.domain' }],
    columns: [
      { name: 'Domain', type: 'string', jsonPath: '.spec.domain' },
      { name: 'Rules', type: 'integer', jsonPath: '.status.rules' },
      { name: 'Accepted', type: 'string', jsonPath: conditionColumn('Accepted', 'status') },
      { name: 'Programmed', type: 'string', jsonPath: conditionColumn('Programmed', 'status') },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      { name: 'Reason', type: 'string', priority: 1, jsonPath: conditionColumn('Ready', 'reason') },
    ],
    description:
      'Rate limits of one domain. The rate limit services enforce them once applied; the status reports whether they do.',
    spec: specSchema,
    status: statusSchema,
  });
