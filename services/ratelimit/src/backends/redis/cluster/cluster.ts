import { isAppError } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import { backendFailure } from '../../../errors.ts';
import type { BatchHit } from '../../batch.ts';
import type { PooledInstanceOptions, RedisInstance } from '../redis-backend.ts';
import { ClusterNodes, type ClusterNodesHooks } from './nodes.ts';
import { getSlot, type NodeAddress, parseRedirection } from './slots.ts';
import { querySlots, Topology, type TopologyHooks } from './topology.ts';

type Method = 'add' | 'read';

export interface ClusterHooks
  extends Pick<ClusterNodesHooks, 'open' | 'metrics' | 'reconnectDelayMs'>,
    Pick<TopologyHooks, 'startDelayMs'> {
  readonly seeds: readonly NodeAddress[];
  /** Called with true for the first connection to any node, with false when all are lost. */
  readonly onAvailable?: ((available: boolean) => void) | undefined;
  readonly log: ClusterLog;
}

/** A node that takes longer to return its slots is skipped, milliseconds. */
const queryTimeoutMs = 2_000;

/**
 * A node whose machine is lost closes no connection, and requests to it fail with KVSTORE_TIMEOUT:
 * this is how much later than the cluster the service knows its replacement, milliseconds.
 */
const refreshIntervalMs = 5_000;

/**
 * Redirections of one hit. One is usual while slots move, two when they move again meanwhile; more
 * mean that the nodes disagree, and each costs a round trip.
 */
const maxRedirections = 5;

/**
 * A Redis Cluster. A request is sent to all nodes that have its counters at once, batched with
 * other requests for the same node; it fails when any part of it fails.
 */
export class ClusterInstance implements RedisInstance {
  readonly #hooks: ClusterHooks;
  readonly #nodes: ClusterNodes;
  readonly #topology: Topology;
  readonly #firstConnection = Promise.withResolvers<void>();
  #available: boolean = false;
  #lastError: Error | undefined;

  constructor(hooks: ClusterHooks, options: PooledInstanceOptions) {
    const { open, metrics, startDelayMs, reconnectDelayMs, seeds, log } = hooks;
    this.#hooks = hooks;
    // An instance that was never started may be closed.
    this.#firstConnection.promise.catch(() => undefined);
    this.#nodes = new ClusterNodes(
      {
        open,
        metrics,
        reconnectDelayMs,
        redirect: (node) => (refusal, method, hit) => this.#redirect(node, refusal, method, hit),
        onAvailable: (node, available) => {
          log.onNodeAvailable(node, available);
          this.#updateAvailable();
        },
        onError: (node, error) => {
          this.#lastError = error;
          log.onNodeError(node, error);
          this.#topology.refresh();
        },
      },
      options,
    );
    const timeoutMs = Math.min(queryTimeoutMs, options.timeoutMs);
    this.#topology = new Topology({
      seeds,
      connected: () => this.#nodes.connected(),
      query: (node, signal) => querySlots(node, { open, timeoutMs, signal }),
      startDelayMs,
      refreshIntervalMs,
      onMap: ({ nodes }) => {
        log.onNodes(nodes);
        this.#nodes.keep(nodes);
        this.#updateAvailable();
      },
      onError: (error) => {
        this.#lastError = error;
        log.onTopologyError(error);
      },
    });
  }

  add(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#send('add', hits);
  }

  read(hits: readonly BatchHit[]): Promise<readonly number[]> {
    return this.#send('read', hits);
  }

  async start(): Promise<void> {
    await this.#topology.start();
    await this.#firstConnection.promise;
  }

  close(reason: Error = backendFailure('the connections to the Redis Cluster are closed')): void {
    this.#topology.close(reason);
    this.#nodes.close(reason);
    this.#firstConnection.reject(reason);
  }

  lastError(): Error | undefined {
    return this.#lastError;
  }

  #updateAvailable(): void {
    const available = this.#nodes.connected().length > 0;
    if (available) {
      this.#firstConnection.resolve();
    }
    if (available !== this.#available) {
      this.#available = available;
      this.#hooks.onAvailable?.(available);
    }
  }

  async #send(method: Method, hits: readonly BatchHit[]): Promise<readonly number[]> {
    const parts = groupByNode(hits, (key) => this.#requireNode(key));
    if (parts.length === 1 && parts[0] !== undefined) {
      return this.#sendToNode(parts[0].node, method, hits);
    }
    const counts = new Array<number>(hits.length).fill(0);
    await Promise.all(
      parts.map(async (part) => {
        const partCounts = await this.#sendToNode(part.node, method, part.hits);
        part.positions.forEach((position, i) => {
          counts[position] = partCounts[i] ?? 0;
        });
      }),
    );
    return counts;
  }

  #requireNode(key: string): NodeAddress {
    const { map } = this.#topology;
    if (map === undefined) {
      throw backendFailure(
        `no connection to the Redis Cluster: ${this.#lastError?.message ?? 'not connected yet'}`,
      );
    }
    const slot = getSlot(key);
    const node = map.getNode(slot);
    if (node === undefined) {
      this.#topology.refresh();
      throw backendFailure(`no node of the Redis Cluster serves slot ${slot}`);
    }
    return node;
  }

  async #sendToNode(
    node: NodeAddress,
    method: Method,
    hits: readonly BatchHit[],
  ): Promise<readonly number[]> {
    const instance = this.#nodes.get(node);
    try {
      return await instance[method](hits);
    } catch (error) {
      // A replica may have taken over. While there is a connection, its errors trigger the refresh.
      if (!this.#nodes.connected().some(({ name }) => name === node.name)) {
        this.#topology.refresh();
      }
      throw error;
    }
  }

  #redirect(node: NodeAddress, refusal: Error, method: Method, hit: BatchHit): Promise<number> | undefined {
    const { message } = refusal;
    if (isAppError(refusal)) {
      // It was never sent, so the node that has the slot by now may be tried.
      const current = this.#topology.map?.getNode(getSlot(hit.key));
      return current === undefined || current.name === node.name
        ? undefined
        : this.#follow(current, method, hit, message);
    }
    if (message.startsWith('CLUSTERDOWN')) {
      this.#topology.refresh();
      return Promise.reject(backendFailure(`the Redis Cluster is down, ${node.name} says: ${message}`));
    }
    const redirection = parseRedirection(message, node);
    if (redirection === undefined) {
      return undefined;
    }
    if (redirection.kind === 'moved') {
      this.#topology.map?.move(redirection.slot, redirection.node);
      this.#topology.refresh(redirection.node);
    }
    return this.#follow(redirection.node, method, { ...hit, asking: redirection.kind === 'ask' }, message);
  }

  async #follow(
    node: NodeAddress,
    method: Method,
    { key, addend, ttlSeconds, asking = false, redirections = 0 }: BatchHit,
    refusal: string,
  ): Promise<number> {
    if (redirections >= maxRedirections) {
      throw backendFailure(`the nodes of the Redis Cluster disagree: ${refusal}`);
    }
    const hit: BatchHit = { key, addend, ttlSeconds, asking, redirections: redirections + 1 };
    const [count = Number.NaN] = await this.#sendToNode(node, method, [hit]);
    return count;
  }
}

interface NodePart {
  readonly node: NodeAddress;
  readonly hits: BatchHit[];
  readonly positions: number[];
}

function groupByNode(hits: readonly BatchHit[], getNode: (key: string) => NodeAddress): readonly NodePart[] {
  const parts = new Map<string, NodePart>();
  hits.forEach((hit, position) => {
    const node = getNode(hit.key);
    const part = parts.get(node.name);
    if (part === undefined) {
      parts.set(node.name, { node, hits: [hit], positions: [position] });
    } else {
      part.hits.push(hit);
      part.positions.push(position);
    }
  });
  return [...parts.values()];
}

/** Logs nodes that join, leave, are lost and recover. */
export class ClusterLog {
  readonly #logger: Logger;
  readonly #redis: string;
  readonly #lost = new Set<string>();
  #nodes: readonly string[] = [];

  /** `redis` names the cluster. */
  constructor(logger: Logger, redis: string) {
    this.#logger = logger;
    this.#redis = redis;
  }

  onNodeAvailable({ name: node }: NodeAddress, available: boolean): void {
    const fields = { redis: this.#redis, node };
    if (!available) {
      this.#lost.add(node);
      this.#logger.warn(fields, 'lost the last connection to a node of the Redis Cluster');
    } else if (this.#lost.delete(node)) {
      this.#logger.warn(fields, 'connected to a node of the Redis Cluster again');
    } else {
      this.#logger.info(fields, 'connected to a node of the Redis Cluster');
    }
  }

  onNodeError({ name: node }: NodeAddress, err: Error): void {
    this.#logger.warn({ redis: this.#redis, node, err }, 'Redis connection failed');
  }

  onNodes(addresses: readonly NodeAddress[]): void {
    const nodes = addresses.map(({ name }) => name).sort();
    const before = this.#nodes;
    if (nodes.join() !== before.join()) {
      // The first nodes are normal; later changes are the end of an outage or the work of an
      // operator.
      const level = before.length === 0 ? 'info' : 'warn';
      this.#logger[level]({ redis: this.#redis, nodes, before }, 'nodes of the Redis Cluster');
    }
    this.#nodes = nodes;
    for (const node of this.#lost) {
      nodes.includes(node) || this.#lost.delete(node);
    }
  }

  onTopologyError(err: Error): void {
    this.#logger.warn({ redis: this.#redis, err }, 'no node of the Redis Cluster returned its slots');
  }
}
