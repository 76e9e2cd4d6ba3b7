import { inTime } from '@tollgate/kit/time';
import type { Redis } from 'ioredis';
import type { TcpRedisAddress } from '../redis-target.ts';

/**
 * Asks one sentinel where the primary is, connecting first where that has not been done.
 *
 * @throws Error with what the sentinel said, when it does not connect, does not answer in time or knows no such primary.
 */
export async function askSentinel(
  sentinel: Redis,
  master: string,
  timeoutMs: number,
): Promise<TcpRedisAddress> {
  const failed = Promise.withResolvers<never>();
  // What a refused login says comes as an event; the commands only say that the connection is gone.
  sentinel.on('error', failed.reject);
  try {
    return await inTime(
      Promise.race([failed.promise, namedPrimary(sentinel, master)]),
      timeoutMs,
      () => new Error(`no answer within ${timeoutMs}ms`),
    );
  } finally {
    sentinel.off('error', failed.reject);
  }
}

async function namedPrimary(sentinel: Redis, master: string): Promise<TcpRedisAddress> {
  if (sentinel.status === 'wait') {
    await sentinel.connect();
  }
  const reply = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master);
  if (reply === null) {
    throw new Error('it knows no master of that name');
  }
  const [host, port]: readonly unknown[] = Array.isArray(reply) ? reply : [];
  if (typeof host !== 'string' || host === '' || !Number(port)) {
    throw new Error('its answer is not the address of a server');
  }
  return { kind: 'tcp', host, port: Number(port) };
}
