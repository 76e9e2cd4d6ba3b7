import t from 'tap';
import { backendFailure } from '../../../src/errors.ts';
import type { ConnectionPool } from '../../../src/stores/redis/connection-pool.ts';
import { Batcher } from '../../../src/stores/redis/instance.ts';
import { peek, take } from '../../support/counts.ts';
import { makeHit } from '../counter-store-contract.ts';

/** A pool whose connections are busy until `giveUp`. */
function busyPool() {
  const { promise, reject } = Promise.withResolvers<never>();
  let acquired = 0;
  const pool: Pick<ConnectionPool, 'acquire' | 'release' | 'discard' | 'retireAll'> = {
    acquire() {
      acquired += 1;
      return promise;
    },
    release: () => undefined,
    discard: () => undefined,
    retireAll: () => undefined,
  };
  return { pool, acquired: () => acquired, giveUp: () => reject(backendFailure('all busy')) };
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}

t.test('while no connection is free, hits gather in one batch, up to 100,000', async (t) => {
  const { pool, acquired, giveUp } = busyPool();
  const batcher = new Batcher(pool, { windowMs: 0, timeoutMs: 10_000 });
  const hits = Array.from({ length: 1_000 }, (_, i) => makeHit(`key ${i}`));
  const whole = batcher.takeAllOrNone([{ ...makeHit('whole'), capacity: 1, refuses: 'alone' }]);
  const waiting: Promise<unknown>[] = [whole];
  for (let i = 0; i < 100; i += 1) {
    waiting.push(take(batcher, hits));
    if (i % 10 === 0) {
      await nextTick();
    }
  }
  t.equal(acquired(), 1, 'one connection was requested over many ticks');
  await t.rejects(take(batcher, [makeHit('one more')]), {
    message: 'too many requests are waiting for Redis',
  });
  await t.rejects(peek(batcher, [makeHit('one more')]), {
    message: 'too many requests are waiting for Redis',
  });
  await t.rejects(batcher.takeAllOrNone([{ ...makeHit('one more'), capacity: 1, refuses: 'alone' }]), {
    message: 'too many requests are waiting for Redis',
  });
  giveUp();
  const results = await Promise.allSettled(waiting);
  t.ok(results.every((result) => result.status === 'rejected' && /all busy/.test(result.reason.message)));
});

t.test('while no connection is free, at most 64 MiB of keys gather', async (t) => {
  const { pool, giveUp } = busyPool();
  const batcher = new Batcher(pool, { windowMs: 0, timeoutMs: 10_000 });
  const long = 'k'.repeat(1024 * 1024);
  const waiting = Array.from({ length: 64 }, (_, i) => take(batcher, [makeHit(`${long}${i}`)]));
  await t.rejects(take(batcher, [makeHit('one more')]), {
    message: 'too many requests are waiting for Redis',
  });
  await nextTick();
  giveUp();
  const results = await Promise.allSettled(waiting);
  t.ok(results.every((result) => result.status === 'rejected'));
});

t.test('without hits no connection is acquired', async (t) => {
  const { pool, acquired } = busyPool();
  const batcher = new Batcher(pool, { windowMs: 0, timeoutMs: 10_000 });
  t.same(await take(batcher, []), []);
  t.same(await peek(batcher, []), []);
  await nextTick();
  t.equal(acquired(), 0);
});
