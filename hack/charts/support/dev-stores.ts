import { startPostgres } from '@tollgate/testkit/postgres';
import { startRedis } from '@tollgate/testkit/redis';
import type { Test } from 'tap';
import { forwardPort } from './forward-port.ts';

/** A data store of `dev.enabled` that runs. */
export interface DevStore {
  stop(): Promise<void>;
}

/** Starts what stands for the Pod of Valkey: a Redis with its password at its port of an address. */
export async function startDevValkey(
  t: Test,
  { address, password }: { readonly address: string; readonly password: string },
): Promise<DevStore> {
  const redis = await startRedis({ password });
  t.teardown(() => redis.stop());
  await forwardPort(t, { address, port: 6379, to: redis.port });
  return { stop: () => redis.stop() };
}

/** Starts what stands for the Pod of PostgreSQL: one with its database and user at its port of an address. */
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
