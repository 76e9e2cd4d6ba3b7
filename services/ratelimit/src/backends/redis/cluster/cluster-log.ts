import type { Logger } from '@tollgate/kit/logger';
import type { ClusterInstanceDeps } from './cluster-instance.ts';

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
