import { isAppError } from '@tollgate/kit/errors';
import type { CounterResult } from '../../../algorithms/algorithm.ts';
import { backendFailure } from '../../../errors.ts';
import type { BatchHit } from '../../batch.ts';
import { sendInParts } from '../../counter-store.ts';
import type { RedisConnection } from '../connection.ts';
import type { Redirect } from '../exchange.ts';
import {
  PooledInstance,
  type PooledInstanceHooks,
  type PooledInstanceOptions,
  type RedisInstance,
} from '../instance.ts';
import type { ClusterLog } from '../telemetry.ts';
import { getSlot, type NodeAddress, parseRedirection } from './slots.ts';
import { querySlots, Topology, type TopologyHooks } from './topology.ts';

type Method = 'take' | 'peek';

export interface ClusterHooks
  extends Pick<ClusterNodesHooks, 'open' | 'metrics' | 'reconnectDelayMs' | 'onLogin'>,
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
    const { open, metrics, startDelayMs, reconnectDelayMs, onLogin, seeds, log } = hooks;
    this.#hooks = hooks;
    // An instance that was never started may be closed.
    this.#firstConnection.promise.catch(() => undefined);
    this.#nodes = new ClusterNodes(
      {
        open,
        metrics,
        reconnectDelayMs,
        onLogin,
        log,
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

  take(hits: readonly BatchHit[]): Promise<readonly CounterResult[]> {
    return this.#send('take', hits);
  }

  peek(hits: readonly BatchHit[]): Promise<readonly CounterResult[]> {
    return this.#send('peek', hits);
  }

  reauthenticate(): void {
    this.#nodes.reauthenticate();
  }

  dial(key: string): readonly RedisConnection[] {
    const first = this.#requireNode(key);
    const others = this.#topology.map?.nodes.filter(({ name }) => name !== first.name) ?? [];
    return [first, ...others].map((node) => this.#hooks.open(node));
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

  #send(method: Method, hits: readonly BatchHit[]): Promise<readonly CounterResult[]> {
    return sendInParts(
      hits,
      ({ key }) => this.#requireNode(key),
      (node, part) => this.#sendToNode(node, method, part),
    );
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
  ): Promise<readonly CounterResult[]> {
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

  #redirect(
    node: NodeAddress,
    refusal: Error,
    method: Method,
    hit: BatchHit,
  ): Promise<CounterResult> | undefined {
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
    { redirections = 0, ...hit }: BatchHit,
    refusal: string,
  ): Promise<CounterResult> {
    if (redirections >= maxRedirections) {
      throw backendFailure(`the nodes of the Redis Cluster disagree: ${refusal}`);
    }
    const redirected = { ...hit, redirections: redirections + 1 };
    const [result] = await this.#sendToNode(node, method, [redirected]);
    if (result === undefined) throw backendFailure(`${node.name} has no result for a hit`);
    return result;
  }
}

interface ClusterNodesHooks extends Pick<PooledInstanceHooks, 'metrics' | 'reconnectDelayMs' | 'onLogin'> {
  /** Creates a connection that is not open yet. */
  readonly open: (node: NodeAddress) => RedisConnection;
  /** Redirects what a node refuses. */
  readonly redirect: (node: NodeAddress) => Redirect;
  readonly onAvailable: (node: NodeAddress, available: boolean) => void;
  readonly onError: (node: NodeAddress, error: Error) => void;
  readonly log: ClusterLog;
}

interface Member {
  readonly node: NodeAddress;
  readonly instance: PooledInstance;
  isConnected: boolean;
}

/** The nodes of a cluster, each with its connection pool. */
class ClusterNodes {
  readonly #hooks: ClusterNodesHooks;
  readonly #options: PooledInstanceOptions;
  readonly #members = new Map<string, Member>();
  /** Removed nodes with batches in flight; `close` does not wait for them. */
  readonly #draining = new Map<PooledInstance, NodeJS.Timeout>();
  #closed: Error | undefined;

  constructor(hooks: ClusterNodesHooks, options: PooledInstanceOptions) {
    this.#hooks = hooks;
    this.#options = options;
  }

  /** The instance of a node, which is added if needed. */
  get(node: NodeAddress): PooledInstance {
    if (this.#closed !== undefined) {
      throw this.#closed;
    }
    return (this.#members.get(node.name) ?? this.#add(node)).instance;
  }

  /** Connects to these nodes and drains all others. */
  keep(nodes: readonly NodeAddress[]): void {
    if (this.#closed !== undefined) {
      return;
    }
    for (const node of nodes) {
      this.#members.has(node.name) || this.#add(node);
    }
    const names = new Set(nodes.map(({ name }) => name));
    for (const member of [...this.#members.values()].filter(({ node }) => !names.has(node.name))) {
      this.#drain(member);
    }
  }

  connected(): readonly NodeAddress[] {
    return [...this.#members.values()].flatMap(({ node, isConnected }) => (isConnected ? [node] : []));
  }

  reauthenticate(): void {
    for (const { instance } of this.#members.values()) instance.reauthenticate();
  }

  close(reason: Error = backendFailure('the connections to the Redis Cluster are closed')): void {
    this.#closed ??= reason;
    for (const { instance } of this.#members.values()) {
      instance.close(reason);
    }
    for (const [instance, timer] of this.#draining) {
      clearTimeout(timer);
      instance.close(reason);
    }
  }

  #add(node: NodeAddress): Member {
    const { open, metrics, reconnectDelayMs, onLogin, redirect, onAvailable, onError, log } = this.#hooks;
    const isMember = (): boolean => this.#members.get(node.name) === member;
    const instance = new PooledInstance(
      {
        open: () => open(node),
        metrics,
        // A node that was never reachable is one that left or joins: the cluster has started.
        startDelayMs: reconnectDelayMs,
        reconnectDelayMs,
        onLogin,
        onAvailable(available) {
          member.isConnected = available;
          if (isMember()) {
            onAvailable(node, available);
          }
        },
        onError(error) {
          if (isMember()) {
            onError(node, error);
          }
        },
        onBreakerOpen: (error, retryMs) => log.onNodeBreakerOpen(node, error, retryMs),
        onBreakerClose: () => log.onNodeBreakerClose(node),
        redirect: redirect(node),
      },
      { ...this.#options, keysPerScript: 1, server: `Redis at ${node.name}` },
    );
    const member: Member = { node, instance, isConnected: false };
    this.#members.set(node.name, member);
    void instance.start();
    return member;
  }

  #drain({ node, instance }: Member): void {
    this.#members.delete(node.name);
    instance.drain(backendFailure(`${node.name} has no slots of the Redis Cluster any more`));
    // By then all batches in flight have ended.
    this.#draining.set(
      instance,
      setTimeout(() => this.#draining.delete(instance), this.#options.timeoutMs),
    );
  }
}
