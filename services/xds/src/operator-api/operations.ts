import { flag, text } from '@tollgate/kit/json-schema';
import type { ApiOperation } from '@tollgate/kit/open-api';
import { policyKind } from '@tollgate/policies/definition/resource-shape';
import { resourceKind } from '@tollgate/rules/resource-shape';
import type { SchemaName } from './schemas.ts';

/** Kinds of objects, in the order of the list. */
export const kindNames = [policyKind, resourceKind] as const;

export type KindName = (typeof kindNames)[number];

/** Admin scopes of the auth server by the rights that they give. */
export const scopeOf = { read: 'policies:read', settings: 'settings:read' } as const;

export type Right = keyof typeof scopeOf;

interface Operation extends ApiOperation {
  readonly right: Right;
  readonly request?: SchemaName;
  readonly response: SchemaName;
}

const kind = { enum: kindNames };

const page = (byDefault: number) => ({
  find: { ...text, description: 'Part of the name.' },
  limit: { type: 'integer', minimum: 1, maximum: 1_000, default: byDefault, description: 'Most items.' },
  cursor: { ...text, description: '`next` of the page before. Absent: the first page.' },
});

const name = { kind, namespace: text, name: text };
const ofObjects = { tag: 'Objects', right: 'read' } as const;

/** All requests, by their `operationId`. */
export const operations = {
  getStatus: {
    ...{ method: 'GET', path: '/v1/status', tag: 'Server', right: 'read' },
    summary: 'Get the state of the server: its source, what it serves, and what is held back',
    response: 'Status',
  },
  getSettings: {
    ...{ method: 'GET', path: '/v1/settings', tag: 'Server', right: 'settings' },
    summary: 'Get the settings in force, without secrets, and the warnings of the start',
    response: 'ServiceSettings',
  },
  listObjects: {
    ...{ method: 'GET', path: '/v1/objects', ...ofObjects },
    summary: 'List access policies and limits with their conditions, by kind, namespace and name',
    query: {
      kind,
      namespace: text,
      accepted: { ...flag, description: 'Only those whose newest version is accepted, or is not.' },
      domain: { ...text, description: 'Only RateLimitConfigs of this domain.' },
      ...page(100),
    },
    response: 'ObjectList',
  },
  getObject: {
    ...{ method: 'GET', path: '/v1/objects/{kind}/{namespace}/{name}', ...ofObjects },
    summary: 'Get an object with its findings, its versions and the clients that have acknowledged it',
    params: name,
    response: 'ObjectDetail',
  },
  getObjectVersion: {
    ...{ method: 'GET', path: '/v1/objects/{kind}/{namespace}/{name}/versions/{generation}', ...ofObjects },
    summary: 'Get the manifest of a version, to compare it or to apply it again with `kubectl apply -f -`',
    params: { ...name, generation: { type: 'integer', minimum: 0 } },
    response: 'ObjectManifest',
  },
  validateManifests: {
    ...{ method: 'POST', path: '/v1/validate', ...ofObjects },
    summary: 'Evaluate manifests against what is live, as if they were applied. Stores nothing',
    request: 'ValidationRequest',
    response: 'Validation',
  },
  listClients: {
    ...{ method: 'GET', path: '/v1/clients', tag: 'Clients', right: 'read' },
    summary: 'List the limiters and auth servers that are connected to this replica, by kind and node id',
    query: {
      kind: { enum: ['limiter', 'auth-server'] },
      state: { enum: ['current', 'behind', 'refusing'] },
      ...page(100),
    },
    response: 'ClientList',
  },
} as const satisfies Record<string, Operation>;

export type OperationId = keyof typeof operations;
