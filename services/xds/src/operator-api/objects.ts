import { runInSlices } from '@tollgate/kit/time';
import type { Client } from '../ads/clients.ts';
import { errors } from '../errors.ts';
import { paginate } from '../paging.ts';
import type { ServerState } from '../server-state.ts';
import { clientsOf, formatTime, toAnswer, toIdentity } from './clients.ts';
import { type PageQuery, toPage } from './cursor.ts';
import { type AdminObject, kinds, type ServedIn } from './kinds.ts';
import { formatManifest } from './manifests.ts';
import { type KindName, kindNames } from './operations.ts';

/** Longest time without yielding to streams. */
const sliceMs = 5;

export interface ObjectQuery extends PageQuery {
  readonly kind?: KindName;
  readonly namespace?: string;
  readonly accepted?: boolean;
  readonly domain?: string;
}

export interface ObjectName {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
}

export function listObjects(state: ServerState, { find = '', ...query }: ObjectQuery): object {
  const byKind = kindNames.map((kind) => [kind, kinds[kind].all(state)] as const);
  const rows = byKind.flatMap(([kind, objects]) =>
    query.kind !== undefined && query.kind !== kind
      ? []
      : objects
          .filter(
            ({ namespace, name, isAccepted, domain }) =>
              (query.namespace === undefined || namespace === query.namespace) &&
              (query.accepted === undefined || isAccepted === query.accepted) &&
              (query.domain === undefined || domain === query.domain) &&
              `${namespace}/${name}`.includes(find),
          )
          .map((object): [string, AdminObject] => [`${kind}/${object.namespace}/${object.name}`, object]),
  );
  const { items, ...page } = toPage(paginate(rows, query));
  const counts = byKind.map(([kind, objects]) => {
    const refused = objects.filter(({ isAccepted }) => !isAccepted).length;
    return [kind, { total: objects.length, refused }] as const;
  });
  return {
    replica: state.replica,
    objects: items.map((object) => summarize(state, object)),
    ...page,
    counts: Object.fromEntries(counts),
  };
}

/** @throws AppError `object_not_found` */
export async function getObject(state: ServerState, name: ObjectName): Promise<object> {
  const object = findObject(state, name);
  const findings = await runInSlices(object.findings(), { sliceMs });
  return {
    replica: state.replica,
    ...summarize(state, object),
    manifest: formatManifest(object.history()?.versions[0]?.manifest ?? manifestInForce(object), object),
    findings,
    versions: listVersions(object),
    acknowledgements: object.servedIn().map((resource) => listAcknowledgements(state, resource)),
  };
}

/** @throws AppError `object_not_found` or `version_not_found` */
export function getObjectVersion(
  state: ServerState,
  { generation, ...name }: ObjectName & { readonly generation: number },
): object {
  const object = findObject(state, name);
  const known = object.history()?.versions.find((version) => version.generation === generation);
  if (known === undefined && object.valid?.generation !== generation) throw errors.version_not_found();
  const manifest = known === undefined ? manifestInForce(object) : known.manifest;
  return { ...name, generation, manifest: formatManifest(manifest, object) };
}

function findObject(state: ServerState, { kind, namespace, name }: ObjectName): AdminObject {
  const object = kinds[kind].find(state, `${namespace}/${name}`);
  if (object === undefined)
    throw errors.object_not_found({ message: `the source has no ${kind} ${namespace}/${name}` });
  return object;
}

function summarize({ sourceName }: ServerState, object: AdminObject): object {
  const { kind, namespace, name, file, generation, isAccepted, inForce, heldBack } = object;
  return {
    ...{ kind, namespace, name, source: sourceName },
    ...(file !== undefined && { file }),
    ...{ generation, accepted: isAccepted },
    ...(inForce !== undefined && { inForce }),
    ...(heldBack !== undefined && { heldBack }),
    ...object.details(),
    conditions: object.conditions(),
    clients: object.clients(),
  };
}

/** A version from before the start is known by its spec only. */
const manifestInForce = ({ apiVersion, kind, valid }: AdminObject) => ({
  ...{ apiVersion, kind },
  spec: valid?.spec,
});

function listVersions({ history, valid, inForce }: AdminObject): readonly object[] {
  const { versions = [] } = history() ?? {};
  const known = versions.map(({ generation, readMs, isAccepted }) => ({
    generation,
    readAt: formatTime(readMs),
    ...(isAccepted !== undefined && { accepted: isAccepted }),
    inForce: generation === inForce,
  }));
  if (valid === undefined || versions.some(({ generation }) => generation === valid.generation)) return known;
  const { generation } = valid;
  return [...known, { generation, accepted: true, inForce: generation === inForce }];
}

/** More are counted, not listed. */
const maxListed = 500;

/** The clients of this replica that get a resource, and whether they have it. */
function listAcknowledgements(state: ServerState, { clients: kind, resource, limiterClass }: ServedIn) {
  const { clients, snapshots } = clientsOf(state, kind);
  const common = snapshots.current();
  const gets = (client: Client) =>
    client.names?.has(resource) !== false &&
    (limiterClass === undefined
      ? common?.classes.get(client.limiterClass ?? '')?.has(resource) !== true
      : client.limiterClass === limiterClass);
  const all = [...clients.all()].filter(gets).map((client) => {
    const version = client.accepted?.get(resource);
    const wanted = snapshots.currentOf(client.limiterClass)?.resources.get(resource)?.version;
    return {
      ...toIdentity(client),
      acknowledged: wanted !== undefined && version === wanted,
      ...(version !== undefined && { version }),
      ...(wanted !== undefined && { wanted }),
      ...toAnswer(client),
    };
  });
  return {
    ...{ clients: kind, resource, connected: all.length },
    acknowledged: all.filter(({ acknowledged }) => acknowledged).length,
    list: all.toSorted((a, b) => Number(a.acknowledged) - Number(b.acknowledged)).slice(0, maxListed),
  };
}
