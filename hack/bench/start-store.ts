import { ask } from '@tollgate/testkit/ask';
import { startRedis } from '@tollgate/testkit/redis';
import { startRedisCluster } from '@tollgate/testkit/redis-cluster';
import type { Backend } from './scenario.ts';

/** Where the service counts, running. */
export interface Store {
  /** Settings that make the service count there. */
  readonly settings: Readonly<Record<string, string>>;
  /** Processes of Redis. */
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

/**
 * Starts what the backend needs, empty: nothing, a Redis, or a Redis Cluster of three nodes.
 *
 * @throws Error when it does not start; nothing is left running.
 */
export async function startStore(backend: Backend): Promise<Store> {
  if (backend === 'memory') {
    return { settings: { BACKEND_TYPE: 'memory' }, pids: [], stop: () => Promise.resolve() };
  }
  const settings = { BACKEND_TYPE: 'redis', KVSTORE_SOCKET_TYPE: 'tcp' };
  if (backend === 'redis') {
    const redis = await startRedis();
    const pids = [await redisPid(redis)];
    return { settings: { ...settings, KVSTORE_URL: redis.address }, pids, stop: redis.stop };
  }
  const cluster = await startRedisCluster();
  return {
    settings: { ...settings, KVSTORE_TYPE: 'cluster', KVSTORE_URL: cluster.address },
    pids: cluster.masters.map(({ pid }) => pid),
    stop: cluster.stop,
  };
}

async function redisPid(redis: { host: string; port: number }): Promise<number> {
  const answer = await ask('INFO server\r\n', redis);
  return Number(/process_id:(\d+)/.exec(answer)?.[1]);
}
