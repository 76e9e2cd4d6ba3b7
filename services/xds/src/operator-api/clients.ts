import type { Client, ClientRegistry } from '../ads/clients.ts';
import type { SnapshotStore } from '../catalog/snapshot.ts';
import { paginate } from '../paging.ts';
import type { RolloutClients } from '../policies/rollout.ts';
import type { ServerState } from '../server-state.ts';
import type { ClientReport } from '../status/client-report.ts';
import { countByState } from '../status/client-report.ts';
import { type PageQuery, toPage } from './cursor.ts';

type ClientKind = 'limiter' | 'auth-server';

type State = Pick<
  ServerState,
  'snapshots' | 'limiters' | 'authServers' | 'replica' | 'otherReplicas' | 'nowMs'
>;

export interface ClientQuery extends PageQuery {
  readonly kind?: ClientKind;
  readonly state?: 'current' | 'behind' | 'refusing';
}

/** The clients of this replica, and the numbers of all. */
export function listClients(state: State, { kind, state: wanted, ...query }: ClientQuery): object {
  const { find = '' } = query;
  const rows = (['auth-server', 'limiter'] as const)
    .filter((one) => kind === undefined || one === kind)
    .flatMap((one) => {
      const { clients, snapshots } = clientsOf(state, one);
      return [...clients.all()].map((client) => ({ kind: one, client, snapshots }));
    })
    .filter(
      ({ client, snapshots }) =>
        (wanted === undefined || stateOf(client, snapshots) === wanted) &&
        [client.nodeId, client.identity, client.peer].some((text) => text.includes(find)),
    )
    .map((row): [string, typeof row] => [`${row.kind} ${row.client.nodeId} ${row.client.id}`, row]);
  const { items, ...page } = toPage(paginate(rows, query));
  const clients = items.map(({ kind: one, client, snapshots }) => ({
    kind: one,
    ...toClient(client, snapshots, state.nowMs()),
  }));
  return { replica: state.replica, clients, ...page, replicas: listReplicas(state) };
}

/** The clients of one kind, and what they get. */
export function clientsOf({ snapshots, limiters, authServers }: State, kind: ClientKind): RolloutClients {
  return kind === 'auth-server' ? authServers : { snapshots, clients: limiters };
}

function stateOf({ limiterClass, acceptedVersion, rejection }: Client, snapshots: SnapshotStore) {
  if (rejection !== undefined) return 'refusing';
  return acceptedVersion === snapshots.currentOf(limiterClass)?.version ? 'current' : 'behind';
}

function toClient(client: Client, snapshots: SnapshotStore, nowMs: number): object {
  const { limiterClass, protocol, connectedMs, acceptedVersion } = client;
  const snapshot = snapshots.currentOf(limiterClass);
  const isCurrent = acceptedVersion === snapshot?.version;
  const sinceMs = snapshot && snapshots.sinceMs(snapshot);
  // It could not have what came into force before it connected.
  const wantedMs = Math.max(sinceMs ?? nowMs, connectedMs);
  return {
    ...toIdentity(client),
    ...(limiterClass !== undefined && { limiterClass }),
    protocol,
    connectedAt: formatTime(connectedMs),
    state: stateOf(client, snapshots),
    ...(acceptedVersion !== undefined && { version: acceptedVersion }),
    ...toAnswer(client),
    lagSeconds: isCurrent ? 0 : Math.max(0, nowMs - wantedMs) / 1_000,
  };
}

export function toIdentity({ nodeId, identity, peer }: Client) {
  return { node: nodeId, ...(identity !== '' && { identity }), address: peer };
}

/** When it acknowledged what it has, and what it refuses. */
export function toAnswer({ acceptedMs, rejection }: Client) {
  return {
    ...(acceptedMs !== undefined && { acknowledgedAt: formatTime(acceptedMs) }),
    ...(rejection && {
      rejection: {
        version: rejection.snapshotVersion,
        at: formatTime(rejection.atMs),
        message: rejection.message,
      },
    }),
  };
}

/** Numbers of clients, of this replica first. */
export function listReplicas({ snapshots, limiters, authServers, replica, otherReplicas }: State) {
  const own = (clients: ClientRegistry, store: SnapshotStore) => {
    const { rejecting, ...counts } = countByState(clients.all(), (name) => store.currentOf(name));
    return { ...counts, refusing: rejecting };
  };
  return [
    {
      replica,
      limiters: own(limiters, snapshots),
      authServers: own(authServers.clients, authServers.snapshots),
    },
    ...otherReplicas().map(({ replica: name, report }) => ({
      replica: name,
      limiters: countReported(report),
      authServers: countReported(report.authServers ?? { groups: [] }),
    })),
  ];
}

function countReported({ groups, snapshot: common }: Pick<ClientReport, 'groups' | 'snapshot'>) {
  const counts = { connected: 0, current: 0, refusing: 0 };
  for (const { count, accepted, rejection, snapshot = common } of groups) {
    counts.connected += count;
    if (rejection !== undefined) counts.refusing += count;
    else if (accepted !== undefined && accepted === snapshot) counts.current += count;
  }
  return counts;
}

export function formatTime(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
