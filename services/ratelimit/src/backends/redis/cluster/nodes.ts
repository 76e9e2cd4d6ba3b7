import type { Redis } from 'ioredis';
import { backendFailure } from '../../../errors.ts';
import type { ConnectionPoolDeps } from '../connection-pool.ts';
import { createPooledInstance, type PooledInstance, type PooledInstanceOptions } from '../instance.ts';
import type { AskElsewhere } from '../pipeline.ts';
import type { NodeAddress } from './slots.ts';

/** What the nodes take. */
export interface ClusterNodesDeps
  extends Pick<ConnectionPoolDeps, 'figures' | 'startDelayMs' | 'reconnectDelayMs'> {
  /** Makes a client that is not yet connected, and that never connects again by itself. */
  readonly open: (node: NodeAddress) => Redis;
  /** Finds what a node refuses elsewhere. */
  readonly askElsewhere: (node: NodeAddress) => AskElsewhere;
  /** Told when the first connection to a node is there, when none is left, and when there is one again. */
  readonly onAvailable: (node: NodeAddress, available: boolean) => void;
  /** Told of every connection that failed. */
  readonly onError: (node: NodeAddress, error: Error) => void;
}

/** The nodes of a cluster that are talked to, each behind a pool of its own. */
export interface ClusterNodes {
  /** The node, met for the first time or not. */
  at(node: NodeAddress): PooledInstance;
  /** Connects to these, and leaves all others; what was asked of them is answered. */
  keep(nodes: readonly NodeAddress[]): void;
  /** Those that there are connections to. */
  connected(): readonly NodeAddress[];
  /** Idempotent. */
  close(reason?: Error): void;
}

interface Member {
  readonly node: NodeAddress;
  readonly instance: PooledInstance;
  isConnected: boolean;
}

/** Makes the nodes; there are none at first. */
export function createClusterNodes(deps: ClusterNodesDeps, options: PooledInstanceOptions): ClusterNodes {
  const members = new Map<string, Member>();
  /** Left, with work to finish; `close` does not wait for it. */
  const leaving = new Map<PooledInstance, NodeJS.Timeout>();
  let closed: Error | undefined;

  function join(node: NodeAddress): Member {
    const isMember = (): boolean => members.get(node.name) === member;
    const instance = createPooledInstance(
      {
        open: () => deps.open(node),
        figures: deps.figures,
        startDelayMs: deps.startDelayMs,
        reconnectDelayMs: deps.reconnectDelayMs,
        onAvailable(available) {
          member.isConnected = available;
          if (isMember()) {
            deps.onAvailable(node, available);
          }
        },
        onError(error) {
          if (isMember()) {
            deps.onError(node, error);
          }
        },
      },
      { ...options, server: `Redis at ${node.name}` },
      deps.askElsewhere(node),
    );
    const member: Member = { node, instance, isConnected: false };
    members.set(node.name, member);
    void instance.start();
    return member;
  }

  function leave({ node, instance }: Member): void {
    members.delete(node.name);
    instance.drain(backendFailure(`${node.name} has no slots of the Redis Cluster any more`));
    // What was at work has been answered or given up by then.
    leaving.set(
      instance,
      setTimeout(() => leaving.delete(instance), options.timeoutMs),
    );
  }

  return {
    at(node) {
      if (closed !== undefined) {
        throw closed;
      }
      return (members.get(node.name) ?? join(node)).instance;
    },
    keep(nodes) {
      if (closed !== undefined) {
        return;
      }
      for (const node of nodes) {
        members.has(node.name) || join(node);
      }
      const names = new Set(nodes.map(({ name }) => name));
      for (const member of [...members.values()].filter(({ node }) => !names.has(node.name))) {
        leave(member);
      }
    },
    connected: () => [...members.values()].flatMap(({ node, isConnected }) => (isConnected ? [node] : [])),
    close(reason = backendFailure('the connections to the Redis Cluster are closed')) {
      closed ??= reason;
      for (const { instance } of members.values()) {
        instance.close(reason);
      }
      for (const [instance, timer] of leaving) {
        clearTimeout(timer);
        instance.close(reason);
      }
    },
  };
}
