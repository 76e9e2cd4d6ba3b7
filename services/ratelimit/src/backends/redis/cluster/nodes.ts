import { backendFailure } from '../../../errors.ts';
import type { Redirect } from '../batcher.ts';
import type { RedisConnection } from '../connection.ts';
import type { ConnectionPoolHooks } from '../connection-pool.ts';
import { PooledInstance, type PooledInstanceOptions } from '../redis-backend.ts';
import type { NodeAddress } from './slots.ts';

export interface ClusterNodesHooks extends Pick<ConnectionPoolHooks, 'metrics' | 'reconnectDelayMs'> {
  /** Creates a connection that is not open yet. */
  readonly open: (node: NodeAddress) => RedisConnection;
  /** Redirects what a node refuses. */
  readonly redirect: (node: NodeAddress) => Redirect;
  readonly onAvailable: (node: NodeAddress, available: boolean) => void;
  readonly onError: (node: NodeAddress, error: Error) => void;
}

interface Member {
  readonly node: NodeAddress;
  readonly instance: PooledInstance;
  isConnected: boolean;
}

/** The nodes of a cluster, each with its connection pool. */
export class ClusterNodes {
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
    const { open, metrics, reconnectDelayMs, redirect, onAvailable, onError } = this.#hooks;
    const isMember = (): boolean => this.#members.get(node.name) === member;
    const instance = new PooledInstance(
      {
        open: () => open(node),
        metrics,
        // A node that was never reachable is one that left or joins: the cluster has started.
        startDelayMs: reconnectDelayMs,
        reconnectDelayMs,
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
      },
      { ...this.#options, server: `Redis at ${node.name}` },
      redirect(node),
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
