import { count, flag, list, object, ref, type Schema, text, time } from '@tollgate/kit/json-schema';
import { serviceSettingsSchema } from '@tollgate/kit/start-report';
import { policyKind } from '@tollgate/policies/definition/resource-shape';
import { resourceKind } from '@tollgate/rules/resource-shape';

const kind = { enum: [policyKind, resourceKind] };
const name = { kind, namespace: text, name: text };
const generation = { ...count, description: '0 is the version before a restart, of a folder.' };
const replica = { ...text, description: 'Name of the replica of the xDS server.' };
const total = { ...count, description: 'Items on all pages.' };
const next = { ...text, description: '`cursor` of the next page. Absent: there is none.' };
const clientKind = { enum: ['limiter', 'auth-server'] };

/** Position in the text of a request. */
const position = { line: count, column: count };

const rejection = object({
  version: { ...text, description: 'The version that was refused.' },
  at: time,
  message: text,
});

const clientIdentity = {
  node: { ...text, description: 'The node id that the client has chosen. May be empty.' },
  identity: { ...text, description: 'Name in the client certificate.' },
  address: text,
};

const summary = {
  ...name,
  source: { enum: ['kubernetes', 'folder'] },
  file: { ...text, description: 'File and number of the document.' },
  generation,
  accepted: { ...flag, description: 'Whether the newest version is accepted as a whole.' },
  inForce: { ...generation, description: 'The generation in force. Absent: none is.' },
  heldBack: { ...text, description: 'Why it stays in force although it was deleted.' },
  domain: { ...text, description: 'The domain of a RateLimitConfig.' },
  limiterClass: { ...text, description: 'Class of the limiters that get it. Absent: all do.' },
  limits: { ...count, description: 'Limits of a RateLimitConfig that are in force.' },
  conditions: list(ref('Condition')),
  clients: {
    ...object(
      { limiters: ref('ClientCount'), authServers: ref('ClientCount') },
      { optional: ['limiters', 'authServers'] },
    ),
    description: 'Clients of all replicas that get it. Absent: it has nothing for them.',
  },
};

const optionalOfSummary = ['file', 'inForce', 'heldBack', 'domain', 'limiterClass', 'limits'];

/** The bodies of requests and responses, by their names in the OpenAPI document. */
export const schemas = {
  ServiceSettings: serviceSettingsSchema,
  ClientCount: object({ connected: count, acknowledged: count }),
  Condition: object(
    {
      type: text,
      status: { enum: ['True', 'False', 'Unknown'] },
      reason: text,
      message: { ...text, description: 'May have several lines, `<field>: <message>`.' },
      target: { ...text, description: 'The Gateway that it is about. Absent: the object.' },
    },
    { optional: ['target'] },
  ),
  Finding: object(
    {
      severity: { enum: ['error', 'warning'] },
      field: { ...text, description: 'JSON path in the manifest, such as `spec.hosts[0]`.' },
      message: text,
      ...position,
    },
    { optional: ['field', 'line', 'column'] },
  ),
  ObjectSummary: object(summary, { optional: optionalOfSummary }),
  ObjectCounts: object({ total: count, refused: count }),
  ObjectList: object(
    {
      replica,
      objects: list(ref('ObjectSummary')),
      total,
      next,
      counts: {
        ...object({ [policyKind]: ref('ObjectCounts'), [resourceKind]: ref('ObjectCounts') }),
        description: 'Without the filters of the request.',
      },
    },
    { optional: ['next'] },
  ),
  ObjectVersion: object(
    {
      generation,
      readAt: { ...time, description: 'Absent: before the start of this replica.' },
      accepted: { ...flag, description: 'Absent: it was replaced before it was evaluated.' },
      inForce: flag,
    },
    { optional: ['readAt', 'accepted'] },
  ),
  Acknowledgement: object(
    {
      clients: clientKind,
      resource: { ...text, description: 'Name of the ADS resource that the object is in.' },
      connected: { ...count, description: 'At this replica.' },
      acknowledged: count,
      list: {
        ...list(ref('AcknowledgingClient')),
        description: 'At most 500, first the clients that have not acknowledged it.',
      },
    },
    { optional: [] },
  ),
  AcknowledgingClient: object(
    {
      ...clientIdentity,
      acknowledged: flag,
      version: { ...text, description: 'Version of the resource that it has. Absent: none.' },
      wanted: { ...text, description: 'Version of the resource that it should have.' },
      acknowledgedAt: { ...time, description: 'When it acknowledged all that it has now.' },
      rejection,
    },
    { optional: ['identity', 'version', 'wanted', 'acknowledgedAt', 'rejection'] },
  ),
  ObjectDetail: object(
    {
      replica,
      ...summary,
      manifest: { ...text, description: 'YAML of the newest version.' },
      findings: { ...list(ref('Finding')), description: 'Problems and warnings of the newest version.' },
      versions: { ...list(ref('ObjectVersion')), description: 'The newest first, at most 11.' },
      acknowledgements: list(ref('Acknowledgement')),
    },
    { optional: optionalOfSummary },
  ),
  ObjectManifest: object({
    ...name,
    generation,
    manifest: { ...text, description: 'YAML without `status` and what the API server adds.' },
  }),
  ValidationRequest: object({
    manifests: {
      ...{ type: 'string', minLength: 1, maxLength: 1_000_000 },
      description: 'YAML or JSON documents, at most 100 objects. Each is evaluated without the others.',
    },
  }),
  Validation: object({
    replica,
    accepted: { ...flag, description: 'Whether all would be accepted as a whole.' },
    problems: {
      ...list(object({ ...position, message: text }, { optional: ['line', 'column'] })),
      description: 'Why a document is not an object.',
    },
    objects: list(ref('ValidatedObject')),
  }),
  ValidatedObject: object(
    {
      ...name,
      exists: { ...flag, description: 'Whether the source has an object of this name.' },
      inForce: { ...generation, description: 'The generation that `changes` compares it with.' },
      accepted: flag,
      conditions: list(ref('Condition')),
      findings: list(ref('Finding')),
      changes: { ...list(ref('SpecChange')), description: 'Against the version in force.' },
      moreChanges: { ...count, description: 'Changes that are not listed.' },
    },
    { optional: ['inForce'] },
  ),
  SpecChange: object(
    {
      field: { ...text, description: 'JSON path, in the new version unless it is removed.' },
      before: { description: 'Absent: it is added.' },
      after: { description: 'Absent: it is removed.' },
    },
    { optional: ['before', 'after'] },
  ),
  Client: object(
    {
      kind: clientKind,
      ...clientIdentity,
      limiterClass: text,
      protocol: { enum: ['sotw', 'delta'], description: 'State of the world, or incremental ADS.' },
      connectedAt: time,
      state: { enum: ['current', 'behind', 'refusing'] },
      version: { ...text, description: 'The version of all its resources that it acknowledged last.' },
      acknowledgedAt: time,
      lagSeconds: {
        type: 'number',
        minimum: 0,
        description: 'Time since the version in force came into force that it does not have. 0: it has it.',
      },
      rejection,
    },
    { optional: ['identity', 'limiterClass', 'version', 'acknowledgedAt', 'rejection'] },
  ),
  ClientList: object(
    { replica, clients: list(ref('Client')), total, next, replicas: list(ref('ReplicaClients')) },
    { optional: ['next'] },
  ),
  ReplicaClients: {
    ...object({ replica, limiters: ref('ClientStates'), authServers: ref('ClientStates') }),
    description: 'Numbers of clients of each replica. The clients of others are in their lists only.',
  },
  ClientStates: object({ connected: count, current: count, refusing: count }),
  Status: object(
    {
      replica,
      release: { ...text, description: 'Release of the server.' },
      ready: flag,
      reason: { ...text, description: 'Why it is not ready.' },
      source: object(
        {
          type: { enum: ['kubernetes', 'folder'] },
          lastChangeAt: time,
          outages: list(object({ reason: text, since: time })),
          problems: list(object({ source: text, message: text })),
        },
        { optional: ['lastChangeAt'] },
      ),
      limits: object(
        { version: text, since: time, domains: count, limits: count },
        { optional: ['version', 'since'] },
      ),
      policies: {
        ...object(
          { version: text, since: time, namespaces: count, problem: text },
          { optional: ['version', 'since', 'problem'] },
        ),
        description: 'Absent: the server does not read access policies.',
      },
      heldDeletions: list(object({ kind, reason: text, objects: count, command: text })),
      replicas: list(ref('ReplicaClients')),
    },
    { optional: ['reason', 'policies'] },
  ),
  Error: object({ code: { ...text, description: 'Stable; docs/errors.md lists them.' }, message: text }),
} as const satisfies Record<string, Schema>;

export type SchemaName = keyof typeof schemas;
