import { isAppError } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { backendFailure } from '../../../errors.ts';
import type { BatchHit } from '../../batch.ts';
import type { PooledInstanceOptions, RedisInstance } from '../instance.ts';
import { type ClusterNodesDeps, createClusterNodes } from './nodes.ts';
import { type NodeAddress, parseRedirection, slotOf } from './slots.ts';
import { askForSlots, createClusterTopology } from './topology.ts';

/** What an instance that is a cluster takes. */
export interface ClusterInstanceDeps
  extends Pick<ClusterNodesDeps, 'open' | 'figures' | 'startDelayMs' | 'reconnectDelayMs'> {
  /** Nodes that are asked for the others. */
  readonly seeds: readonly NodeAddress[];
  /** Told when there is a first connection to any node, when there is none left to any, and when there is one again. */
  readonly onAvailable?: ((available: boolean) => void) | undefined;
  /** The same for a single node. */
  readonly onNodeAvailable: (node: NodeAddress, available: boolean) => void;
  /** Told of every connection that failed. */
  readonly onNodeError: (node: NodeAddress, error: Error) => void;
  /** Told of the nodes that have slots, each time the map was read. */
  readonly onNodes: (nodes: readonly NodeAddress[]) => void;
  /** Told when no node can be asked where the slots are. */
  readonly onTopologyError: (error: Error) => void;
}

/** A node that takes longer to tell where the slots are is passed over for the next, milliseconds. */
const askTimeoutMs = 2_000;

/**
 * A node whose machine is gone closes no connection, and what is sent to it only fails with KVSTORE_TIMEOUT: this is how
 * much later than the cluster the service knows who took its place, milliseconds.
 */
const refreshEveryMs = 5_000;

/**
 * How often a hit is sent on. Once is usual while slots move, twice when they move again meanwhile; more often means
 * that nodes disagree, and each time costs both.
 */
const maxRedirections = 5;

/**
 * An instance whose counters are spread over the nodes of a Redis Cluster. A request goes to each node that has counters
 * of it, to all at the same time, and together with what others ask of that node; it fails when any part of it does.
 */
export function createClusterInstance(
  deps: ClusterInstanceDeps,
  options: PooledInstanceOptions,
): RedisInstance {
  const firstConnection = Promise.withResolvers<void>();
  // One that was never started may be closed.
  firstConnection.promise.catch(() => undefined);
  let available = false;
  let lastError: Error | undefined;

  const nodes = createClusterNodes(
    {
      open: deps.open,
      figures: deps.figures,
      startDelayMs: deps.startDelayMs,
      reconnectDelayMs: deps.reconnectDelayMs,
      askElsewhere: (node) => (refusal, method, hit) => askElsewhere(node, refusal, method, hit),
      onAvailable(node, nodeIsAvailable) {
        deps.onNodeAvailable(node, nodeIsAvailable);
        announce();
      },
      onError(node, error) {
        lastError = error;
        deps.onNodeError(node, error);
        topology.refresh();
      },
    },
    options,
  );

  const topology = createClusterTopology({
    seeds: deps.seeds,
    connected: nodes.connected,
    ask: (node, signal) =>
      askForSlots(node, {
        open: deps.open,
        timeoutMs: Math.min(askTimeoutMs, options.timeoutMs),
        signal,
      }),
    startDelayMs: deps.startDelayMs,
    refreshEveryMs,
    onMap(map) {
      deps.onNodes(map.nodes);
      nodes.keep(map.nodes);
      announce();
    },
    onError(error) {
      lastError = error;
      deps.onTopologyError(error);
    },
  });

  function announce(): void {
    const now = nodes.connected().length > 0;
    if (now) {
      firstConnection.resolve();
    }
    if (now !== available) {
      available = now;
      deps.onAvailable?.(now);
    }
  }

  async function ask(method: 'add' | 'read', hits: readonly BatchHit[]): Promise<readonly number[]> {
    const parts = partsOf(hits, nodeOf);
    if (parts.length === 1 && parts[0] !== undefined) {
      return askNode(parts[0].node, method, hits);
    }
    const counts = new Array<number>(hits.length).fill(0);
    await Promise.all(
      parts.map(async (part) => {
        const partCounts = await askNode(part.node, method, part.hits);
        part.places.forEach((place, i) => {
          counts[place] = partCounts[i] ?? 0;
        });
      }),
    );
    return counts;
  }

  function nodeOf(key: string): NodeAddress {
    const map = topology.map();
    if (map === undefined) {
      throw backendFailure(
        `no connection to the Redis Cluster: ${lastError?.message ?? 'not connected yet'}`,
      );
    }
    const slot = slotOf(key);
    const node = map.nodeOf(slot);
    if (node === undefined) {
      topology.refresh();
      throw backendFailure(`no node of the Redis Cluster serves slot ${slot}`);
    }
    return node;
  }

  async function askNode(
    node: NodeAddress,
    method: 'add' | 'read',
    hits: readonly BatchHit[],
  ): Promise<readonly number[]> {
    const instance = nodes.at(node);
    try {
      return await instance[method](hits);
    } catch (error) {
      // A replica may have taken its place. While there is a connection, whoever notices something says so by itself.
      if (!nodes.connected().some(({ name }) => name === node.name)) {
        topology.refresh();
      }
      throw error;
    }
  }

  function askElsewhere(
    node: NodeAddress,
    refusal: Error,
    method: 'add' | 'read',
    hit: BatchHit,
  ): Promise<number> | undefined {
    const { message } = refusal;
    if (isAppError(refusal)) {
      // It was never sent: whoever has the slot by now may be asked.
      const now = topology.map()?.nodeOf(slotOf(hit.key));
      return now === undefined || now.name === node.name ? undefined : sendOn(now, method, hit, message);
    }
    if (message.startsWith('CLUSTERDOWN')) {
      topology.refresh();
      return Promise.reject(backendFailure(`the Redis Cluster is down, ${node.name} says: ${message}`));
    }
    const redirection = parseRedirection(message, node);
    if (redirection?.kind === 'moved') {
      topology.map()?.move(redirection.slot, redirection.node);
      topology.refresh(redirection.node);
    }
    return (
      redirection && sendOn(redirection.node, method, { ...hit, asking: redirection.kind === 'ask' }, message)
    );
  }

  async function sendOn(
    node: NodeAddress,
    method: 'add' | 'read',
    { key, addend, ttlSeconds, asking = false, redirections = 0 }: BatchHit,
    because: string,
  ): Promise<number> {
    if (redirections >= maxRedirections) {
      throw backendFailure(`the nodes of the Redis Cluster disagree: ${because}`);
    }
    const hit: BatchHit = { key, addend, ttlSeconds, asking, redirections: redirections + 1 };
    const [count = Number.NaN] = await askNode(node, method, [hit]);
    return count;
  }

  return {
    add: (hits) => ask('add', hits),
    read: (hits) => ask('read', hits),
    async start() {
      await topology.start();
      await firstConnection.promise;
    },
    close(reason = backendFailure('the connections to the Redis Cluster are closed')) {
      topology.close(reason);
      nodes.close(reason);
      firstConnection.reject(reason);
    },
    lastError: () => lastError,
  };
}

/** What goes to one node. */
interface Part {
  readonly node: NodeAddress;
  readonly hits: BatchHit[];
  /** Where each of the hits stood in the request. */
  readonly places: number[];
}

function partsOf(hits: readonly BatchHit[], nodeOf: (key: string) => NodeAddress): readonly Part[] {
  const parts = new Map<string, Part>();
  hits.forEach((hit, place) => {
    const node = nodeOf(hit.key);
    const part = parts.get(node.name);
    if (part === undefined) {
      parts.set(node.name, { node, hits: [hit], places: [place] });
    } else {
      part.hits.push(hit);
      part.places.push(place);
    }
  });
  return [...parts.values()];
}

/** Tells the log of nodes that come, go, are lost and are back. `redis` names the cluster. */
export function clusterLog(
  logger: Logger,
  redis: string,
): Pick<ClusterInstanceDeps, 'onNodeAvailable' | 'onNodeError' | 'onNodes' | 'onTopologyError'> {
  const lost = new Set<string>();
  let before: readonly string[] = [];
  return {
    onNodeAvailable({ name: node }, available) {
      if (!available) {
        lost.add(node);
        logger.warn({ redis, node }, 'lost the last connection to a node of the Redis Cluster');
      } else if (lost.delete(node)) {
        logger.warn({ redis, node }, 'connected to a node of the Redis Cluster again');
      } else {
        logger.info({ redis, node }, 'connected to a node of the Redis Cluster');
      }
    },
    onNodeError({ name: node }, err) {
      logger.warn({ redis, node, err }, 'Redis connection failed');
    },
    onNodes(addresses) {
      const nodes = addresses.map(({ name }) => name).sort();
      if (nodes.join() !== before.join()) {
        // The first ones are no news; later ones are the end of an outage, or of an operator's work.
        logger[before.length === 0 ? 'info' : 'warn']({ redis, nodes, before }, 'nodes of the Redis Cluster');
      }
      before = nodes;
      for (const node of lost) {
        nodes.includes(node) || lost.delete(node);
      }
    },
    onTopologyError(err) {
      logger.warn({ redis, err }, 'no node of the Redis Cluster tells where its slots are');
    },
  };
}
