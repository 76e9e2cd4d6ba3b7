import { startMemcached } from '@tollgate/testkit/memcached';
import { startPostgres } from '@tollgate/testkit/postgres';
import { startRedis } from '@tollgate/testkit/redis';
import { startRedisCluster } from '@tollgate/testkit/redis-cluster';
import { startRedisSentinels } from '@tollgate/testkit/redis-sentinel';
import type { Test } from 'tap';
import { forwardPort, someAddress } from './loopback.ts';
import { type Operator, secret, tlsFiles } from './operator.ts';

const passwords = { cluster: 'of-every-node', redis: 'of-a-primary', sentinel: 'of-a-sentinel' } as const;

/** Where servers of each kind listen, as the values files have it. */
const ports = { redis: 6379, sentinel: 26_379, memcached: 11_211 } as const;

/**
 * An operator who has a Redis behind sentinels, a Redis Cluster with TLS and memcached servers with
 * mutual TLS besides, and the Secrets that lead there. They are stopped when the test ends.
 */
export async function withCounterStores(t: Test, operator: Operator): Promise<Operator> {
  const stores = await Promise.all([
    startSentinels(t),
    startCluster(t, operator),
    startMemcacheds(t, operator),
  ]);
  const { certificates } = operator;
  return {
    ...operator,
    hosts: Object.assign({}, operator.hosts, ...stores),
    async makeSecrets(kube, namespace) {
      await operator.makeSecrets(kube, namespace);
      const items = [
        secret(namespace, 'redis-cluster', { password: passwords.cluster }),
        secret(namespace, 'redis-sentinel', {
          password: passwords.redis,
          'sentinel-password': passwords.sentinel,
        }),
        secret(namespace, 'memcached-tls', tlsFiles(certificates, certificates.client)),
      ];
      await kube.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    },
  };
}

type Hosts = Readonly<Record<string, string>>;

/** One Sentinel under three names is enough to find the primary. */
async function startSentinels(t: Test): Promise<Hosts> {
  const redis = await startRedisSentinels({
    password: passwords.redis,
    sentinelPassword: passwords.sentinel,
  });
  t.teardown(() => redis.stop());
  const to = Number(redis.sentinels[0]?.address.split(':')[1]);
  const address = someAddress();
  await forwardPort(t, { address, port: ports.sentinel, to });
  return { 'sentinel-0': address, 'sentinel-1': address, 'sentinel-2': address };
}

async function startCluster(t: Test, { certificates }: Operator): Promise<Hosts> {
  const { certFile, keyFile } = certificates.issue({
    name: 'redis-cluster',
    // Names by which they call each other.
    subjectAltNames: ['DNS:redis-cluster-0', 'DNS:redis-cluster-1', 'DNS:redis-cluster-2', 'IP:127.0.0.1'],
  });
  const cluster = await startRedisCluster({
    password: passwords.cluster,
    tls: { certFile, keyFile, caFile: certificates.ca.certFile },
    args: ['--tls-auth-clients', 'no'],
  });
  t.teardown(() => cluster.stop());
  return await reachable(t, { name: 'redis-cluster', port: ports.redis, servers: cluster.masters });
}

async function startMemcacheds(t: Test, { certificates }: Operator): Promise<Hosts> {
  const { certFile, keyFile } = certificates.issue({
    name: 'memcached',
    subjectAltNames: ['DNS:memcached-0', 'DNS:memcached-1'],
  });
  const tls = { certFile, keyFile, caFile: certificates.ca.certFile };
  const servers = await Promise.all([startMemcached({ tls }), startMemcached({ tls })]);
  for (const server of servers) t.teardown(() => server.stop());
  return await reachable(t, { name: 'memcached', port: ports.memcached, servers });
}

/** Gives servers the names `<name>-0`, `<name>-1` and so on, and the port that all of them have. */
async function reachable(
  t: Test,
  {
    name,
    port,
    servers,
  }: { readonly name: string; readonly port: number; readonly servers: readonly { readonly port: number }[] },
): Promise<Hosts> {
  const named = servers.map(async (server, index) => {
    const address = someAddress();
    await forwardPort(t, { address, port, to: server.port });
    return [`${name}-${index}`, address] as const;
  });
  return Object.fromEntries(await Promise.all(named));
}

/** A data store of `dev.enabled` that runs. */
export interface DevStore {
  stop(): Promise<void>;
}

/**
 * Starts what stands for the Pod of Valkey: a Redis with its password at its port of an address.
 */
export async function startDevValkey(
  t: Test,
  { address, password }: { readonly address: string; readonly password: string },
): Promise<DevStore> {
  const redis = await startRedis({ password });
  t.teardown(() => redis.stop());
  await forwardPort(t, { address, port: 6379, to: redis.port });
  return { stop: () => redis.stop() };
}

/**
 * Starts what stands for the Pod of PostgreSQL: one with its database and user at its port of an
 * address.
 */
export async function startDevPostgresql(
  t: Test,
  { address, password }: { readonly address: string; readonly password: string },
): Promise<DevStore> {
  const server = await startPostgres();
  t.teardown(() => server.stop());
  await server.createOwnedDatabase('tollgate', password);
  await forwardPort(t, { address, port: 5432, to: server.port });
  return { stop: () => server.stop() };
}
