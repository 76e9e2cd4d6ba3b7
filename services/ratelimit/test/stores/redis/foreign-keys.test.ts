import type { Rate } from '@tollgate/rules/rule-set';
import { type RedisReply, redisCommand, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import type { CounterStore, Hit } from '../../../src/stores/counter-store.ts';
import { take } from '../../support/counts.ts';
import { redisFromSettings } from '../../support/redis-from-settings.ts';
import { makeHit } from '../counter-store-contract.ts';

const server = await startRedis();
t.teardown(server.stop);
const command = (...words: string[]): Promise<RedisReply> => redisCommand(server, ...words);

const algorithms = ['fixed_window', 'token_bucket', 'sliding_window', 'concurrency'] as const;

/** Commands that create and read a value that is no counter. */
const values = {
  list: { create: ['RPUSH', 'queue', 'a', 'b'], read: ['LRANGE', 'queue', '0', '-1'] },
  hash: { create: ['HSET', 'queue', 'a', 'b'], read: ['HGETALL', 'queue'] },
  'sorted set': { create: ['ZADD', 'queue', '1', 'a'], read: ['ZRANGE', 'queue', '0', '-1'] },
} as const;

function hitOf(algorithm: (typeof algorithms)[number], key: string): Hit {
  if (algorithm === 'fixed_window') return makeHit(key);
  const rate: Rate = { algorithm, limit: 10, periodSeconds: 3600, burst: 10 };
  return { ...makeHit(key), rate };
}

async function startStore(t: Test): Promise<CounterStore> {
  await command('FLUSHALL');
  const { store } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  return store;
}

for (const algorithm of algorithms) {
  for (const [type, { create, read }] of Object.entries(values)) {
    t.test(`${algorithm}: a ${type} at the key of a counter is an error, and stays`, async (t) => {
      const store = await startStore(t);
      await command(...create);
      const before = await command(...read);
      const added = take(store, [hitOf(algorithm, 'queue')]);
      const others = take(store, [hitOf(algorithm, 'other')]);
      await t.rejects(added, { code: 'backend_failure', message: /^WRONGTYPE .*: queue$/ });
      t.equal((await others).length, 1, 'counters of the same batch are counted');
      t.same(await command(...read), before);
    });

    t.test(`${algorithm}, atomic: a ${type} at the key of a counter is an error, and stays`, async (t) => {
      const store = await startStore(t);
      await command(...create);
      const before = await command(...read);
      const decide = async (...keys: readonly string[]) =>
        await store.takeAllOrNone?.(
          keys.map((key) => ({ ...hitOf(algorithm, key), capacity: 10, refuses: 'alone' })),
        );
      const added = decide('other', 'queue');
      const others = decide('third');
      await t.rejects(added, { code: 'backend_failure', message: /not a counter.*other, queue/ });
      t.equal((await others)?.refused, false, 'other requests of the same batch are counted');
      t.same(await command(...read), before);
      t.equal(await command('EXISTS', 'other'), 0, 'the other counters of the request are not counted');
    });
  }
}

t.test('a refund to a list is an error, and the list stays', async (t) => {
  const store = await startStore(t);
  await command(...values.list.create);
  await t.rejects(take(store, [makeHit('queue', -1)]), {
    code: 'backend_failure',
    message: /^WRONGTYPE .*: queue$/,
  });
  t.same(await command(...values.list.read), ['a', 'b']);
});
