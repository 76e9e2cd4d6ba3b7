import { awaitUntil } from './await-until.ts';
import { type Redis, type RedisReply, type RedisTls, redisCommand, startRedis } from './redis.ts';
import { withFreePort } from './tcp.ts';

/** Options of a test's cluster. */
export interface RedisClusterOptions {
  /** Nodes that hold slots, default 3. */
  readonly masters?: number;
  /** 0 (the default), or as many as masters: the n-th one follows the n-th master. */
  readonly replicas?: number;
  /** Password of the default user, on every node. */
  readonly password?: string;
  /** Speak TLS, and only TLS, also among themselves. */
  readonly tls?: RedisTls;
  /** More arguments for every redis-server. */
  readonly args?: readonly string[];
}

/** One server of a cluster. */
interface RedisClusterNode extends Redis {
  /** The name that it goes by in the cluster. */
  readonly id: string;
  /** Where the nodes talk to one another. */
  readonly busPort: number;
  /**
   * Runs a command on this node; it does not follow redirections.
   *
   * @throws Error with the words of Redis when it refuses.
   */
  command(...words: string[]): Promise<RedisReply>;
}

/** A slot on its way from one node to another, step by step. */
interface SlotMove {
  /** Takes along the keys that are there; until `finish` new ones are made at the new node. */
  migrateKeys(): Promise<void>;
  /** Tells all nodes whose slot it is now, and waits until they agree. */
  finish(): Promise<void>;
}

/** A running cluster. */
export interface RedisCluster {
  /** They have the order of the slots that they began with. */
  readonly masters: readonly RedisClusterNode[];
  readonly replicas: readonly RedisClusterNode[];
  /** `host:port,host:port` of all masters. */
  readonly address: string;
  /** Which of the masters a slot was given to at the start. */
  masterOf(slot: number): number;
  /** Opens a slot's move; the numbers count masters. */
  startMove(slot: number, from: number, to: number): Promise<SlotMove>;
  /** Moves a slot with its keys. */
  moveSlot(slot: number, from: number, to: number): Promise<void>;
  /** Kills a master, as a crash would; its replica knows nothing of it for a while. */
  stopNode(master: number): Promise<void>;
  /**
   * Has a master stand still, as one whose machine hangs: it answers nothing, and its connections
   * stay.
   */
  pauseNode(master: number): void;
  resumeNode(master: number): void;
  /** Makes the replica of a master the master, at once and whatever became of the old one. */
  promoteReplica(master: number): Promise<void>;
  /** Lets a master and its replica change places in good order: no write is lost. */
  handOver(master: number): Promise<void>;
  stop(): Promise<void>;
}

const slotCount = 16_384;

/**
 * So long that no test meets a failover that it did not ask for: a node of a busy machine may stand
 * still for a second. Tests call for a failover by `promoteReplica`.
 */
const nodeTimeoutMs = 30_000;

/**
 * A requested failover may fail, which Redis notices after 5 s: it is requested
 * again before.
 */
const failoverTimeoutMs = 2_000;

/** Redis keeps a new cluster closed for 2 s; a busy machine takes its time as well. */
const readyTimeoutMs = 60_000;

/** Redis retries a lost introduction only after half of `nodeTimeoutMs`. */
const introductionTimeoutMs = 2_000;

/**
 * Starts a cluster and waits until every node serves and knows all others, which Redis takes 2 s
 * for. A slot without a node takes nothing with it (`cluster-require-full-coverage no`) unless
 * `args` say otherwise.
 *
 * @throws Error when redis-server is not installed or does not start; nothing is left running.
 */
export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const { masters: masterCount = 3, replicas: replicaCount = 0 } = options;
  const started: RedisClusterNode[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((node) => node.stop()));
  };
  try {
    await Promise.all(
      Array.from({ length: masterCount + replicaCount }, async (_, i) => {
        started[i] = await startNode(options);
      }),
    );
    const masters = started.slice(0, masterCount);
    const replicas = started.slice(masterCount);
    await form(masters, replicas);
    return { ...operate(masters, replicas, options), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The bus has a port of its own: the usual one, 10000 above, may be taken. */
function startNode({ password, tls, args = [] }: RedisClusterOptions): Promise<RedisClusterNode> {
  return withFreePort(async (busPort) => {
    const cluster = [
      ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
      ...['--cluster-node-timeout', String(nodeTimeoutMs), '--cluster-require-full-coverage', 'no'],
      ...['--repl-diskless-sync-delay', '0'],
      ...(password === undefined ? [] : ['--masterauth', password]),
      ...(tls === undefined ? [] : ['--tls-cluster', 'yes', '--tls-replication', 'yes']),
    ];
    const redis = await startRedis({
      args: [...cluster, ...args],
      ...(password === undefined ? {} : { password }),
      ...(tls === undefined ? {} : { tls }),
    });
    const command = (...words: string[]): Promise<RedisReply> =>
      redisCommand({ host: redis.host, port: redis.port, password, tls }, ...words);
    return { ...redis, busPort, command, id: String(await command('CLUSTER', 'MYID')) };
  });
}

/** Gives out the slots, introduces the nodes to one another, and waits until all agree. */
async function form(
  masters: readonly RedisClusterNode[],
  replicas: readonly RedisClusterNode[],
): Promise<void> {
  const nodes = [...masters, ...replicas];
  await Promise.all(
    masters.map(async ({ command }, i) => {
      const [first, last] = slotRange(i, masters.length);
      await command('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last));
      await command('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
    }),
  );
  type Holds = (node: RedisClusterNode) => Promise<boolean>;
  const everywhere = (what: string, holds: Holds, timeoutMs = readyTimeoutMs): Promise<boolean> =>
    awaitUntil(async () => (await Promise.all(nodes.map(holds))).every(Boolean), {
      what,
      timeoutMs,
      everyMs: 50,
    });
  // Introduces a node to all: faster than waiting for gossip.
  const introduce = (who: readonly RedisClusterNode[], what: string, holds: Holds): Promise<boolean> =>
    awaitUntil(
      async () => {
        await Promise.all(who.flatMap((node) => nodes.map((other) => meet(node, other))));
        return everywhere(what, holds, introductionTimeoutMs);
      },
      { what, timeoutMs: readyTimeoutMs },
    );
  await introduce(nodes, 'all nodes to know each other', async (node) => {
    const known = String(await node.command('CLUSTER', 'NODES'));
    return nodes.every(({ id }) => known.includes(id)) && !known.includes('handshake');
  });
  await Promise.all(replicas.map(({ command }, i) => command('CLUSTER', 'REPLICATE', masters[i]?.id ?? '')));
  // A master that does not know the primary of a replica gives it no vote in a failover, and gossip
  // takes up to 6 s to tell it. A second introduction tells it at once.
  await introduce(replicas, 'all nodes to know the primaries of the replicas', async (node) => {
    const known = String(await node.command('CLUSTER', 'NODES'));
    return replicas.every(({ id }, i) => masterIn(known, id) === masters[i]?.id);
  });
  await everywhere('the cluster to be open', async (node) => {
    const info = String(await node.command('CLUSTER', 'INFO'));
    return info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${slotCount}`);
  });
  await Promise.all(
    replicas.map((replica) =>
      awaitUntil(
        async () => String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
        { what: 'a replica to follow', timeoutMs: readyTimeoutMs, everyMs: 50 },
      ),
    ),
  );
}

/** First and last slot of a master. */
function slotRange(master: number, masters: number): readonly [number, number] {
  const firstOf = (i: number): number => Math.floor((i * slotCount) / masters);
  return [firstOf(master), firstOf(master + 1) - 1];
}

function meet(node: RedisClusterNode, other: RedisClusterNode): Promise<RedisReply> {
  return node.command('CLUSTER', 'MEET', other.host, String(other.port), String(other.busPort));
}

function operate(
  masters: readonly RedisClusterNode[],
  replicas: readonly RedisClusterNode[],
  { password }: RedisClusterOptions,
): Omit<RedisCluster, 'stop'> {
  const master = (i: number): RedisClusterNode => pick(masters, i, 'master');

  async function startMove(slot: number, from: number, to: number): Promise<SlotMove> {
    const [source, target] = [master(from), master(to)];
    await target.command('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', source.id);
    await source.command('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', target.id);
    return {
      async migrateKeys() {
        const keys = await source.command('CLUSTER', 'GETKEYSINSLOT', String(slot), '1000');
        if (!Array.isArray(keys) || keys.length === 0) return;
        const auth = password === undefined ? [] : ['AUTH', password];
        const to = [target.host, String(target.port), '', '0', '5000'];
        await source.command('MIGRATE', ...to, ...auth, 'KEYS', ...keys.map(String));
      },
      async finish() {
        // The new owner first: were it the old one, both would send clients to the other for a
        // moment.
        const others = masters.filter((node) => node !== source && node !== target && node.isRunning());
        for (const node of [target, source, ...others]) {
          await node.command('CLUSTER', 'SETSLOT', String(slot), 'NODE', target.id);
        }
        // A node that has not heard of the newest epoch would take the next slot at an epoch too
        // low, and lose it again.
        await awaitUntil(() => knowEpochOf(target, [source, ...others]), {
          what: 'all nodes to know the epoch of the new owner',
          timeoutMs: readyTimeoutMs,
        });
      },
    };
  }

  async function failOver(i: number, ...how: string[]): Promise<void> {
    const { command } = pick(replicas, i, 'replica');
    const isMaster = async (): Promise<boolean> => String(await command('ROLE')).startsWith('master');
    const once = async (): Promise<boolean> => {
      await command('CLUSTER', 'FAILOVER', ...how);
      return awaitUntil(isMaster, { what: 'the failover', timeoutMs: failoverTimeoutMs });
    };
    await awaitUntil(async () => (await isMaster()) || (await once()), {
      what: 'the replica to become the master',
      timeoutMs: readyTimeoutMs,
    });
  }

  return {
    masters,
    replicas,
    address: masters.map(({ address }) => address).join(','),
    masterOf: (slot) => masters.findIndex((_, i) => slot <= slotRange(i, masters.length)[1]),
    startMove,
    async moveSlot(slot, from, to) {
      const move = await startMove(slot, from, to);
      await move.migrateKeys();
      await move.finish();
    },
    stopNode: (i) => master(i).kill(),
    pauseNode: (i) => void process.kill(master(i).pid, 'SIGSTOP'),
    resumeNode: (i) => void process.kill(master(i).pid, 'SIGCONT'),
    promoteReplica: (i) => failOver(i, 'TAKEOVER'),
    handOver: (i) => failOver(i),
  };
}

/**
 * Whether nodes give a node the epoch that it gives itself. Epochs decide whose slot it is when two
 * claim it.
 */
async function knowEpochOf(node: RedisClusterNode, others: readonly RedisClusterNode[]): Promise<boolean> {
  const epochs = await Promise.all(
    [node, ...others].map(async ({ command }) => epochIn(String(await command('CLUSTER', 'NODES')), node.id)),
  );
  return epochs.every((epoch) => epoch !== undefined && epoch === epochs[0]);
}

/** The configuration epoch of a node, from the reply to `CLUSTER NODES`. */
function epochIn(nodes: string, id: string): string | undefined {
  return fieldIn(nodes, id, 6);
}

/** The id of the master that a node follows, from the reply to `CLUSTER NODES`. */
function masterIn(nodes: string, id: string): string | undefined {
  return fieldIn(nodes, id, 3);
}

function fieldIn(nodes: string, id: string, field: number): string | undefined {
  return nodes
    .split('\n')
    .find((line) => line.startsWith(id))
    ?.split(' ')[field];
}

function pick(nodes: readonly RedisClusterNode[], i: number, kind: string): RedisClusterNode {
  const node = nodes[i];
  if (node === undefined) throw new RangeError(`the cluster has no ${kind} ${i}`);
  return node;
}
