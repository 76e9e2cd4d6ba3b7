import { awaitUntil } from '@tollgate/testkit/await-until';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import type { CounterStore } from '../../../src/stores/counter-store.ts';
import { Expiries } from '../../../src/stores/redis/expiries.ts';
import { take } from '../../support/counts.ts';
import { answerCommands, startInvalidServer } from '../../support/invalid-server.ts';
import { redisFromSettings } from '../../support/redis-from-settings.ts';
import { makeHit } from '../counter-store-contract.ts';

const server = await startRedis();
t.teardown(server.stop);

function command(...words: string[]) {
  return redisCommand(server, ...words);
}

async function started(t: Test, address = server.address): Promise<CounterStore> {
  const { store } = await redisFromSettings(t, { KVSTORE_URL: address, KVSTORE_TIMEOUT: '20s' });
  await store.start();
  return store;
}

async function expires(key: string): Promise<boolean> {
  return Number(await command('TTL', key)) > 0;
}

t.test('EXPIRE is sent once for each counter', async (t) => {
  const store = await started(t);
  await command('CONFIG', 'RESETSTAT');
  for (let i = 0; i < 5; i += 1) await take(store, [makeHit('once a'), makeHit('once b')]);
  const stats = String(await command('INFO', 'commandstats'));
  t.match(stats, /cmdstat_incrby:calls=10,/);
  t.match(stats, /cmdstat_expire:calls=2,/);
});

t.test('a counter of 0 always gets its expiry', async (t) => {
  const store = await started(t);
  await take(store, [makeHit('looked at')]);
  await command('DEL', 'looked at');
  t.same(await take(store, [makeHit('looked at', 0)]), [0]);
  t.ok(await expires('looked at'));
});

t.test('a counter that vanished expires after the next hit', async (t) => {
  const store = await started(t);
  const losses: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['deleted', () => command('DEL', 'vanishing')],
    ['flushed', () => command('FLUSHALL')],
    [
      'evicted',
      async () => {
        await command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-random');
        await command('CONFIG', 'SET', 'maxmemory', '1');
        await awaitUntil(async () => (await command('DBSIZE')) === 0, { what: 'eviction' });
        await command('CONFIG', 'SET', 'maxmemory', '0');
      },
    ],
  ];
  for (const [name, lose] of losses) {
    await take(store, [makeHit('vanishing')]);
    await take(store, [makeHit('vanishing')]);
    await lose();
    t.same(await take(store, [makeHit('vanishing', 3)]), [3], name);
    await awaitUntil(() => expires('vanishing'), { what: 'the expiry' });
    t.equal(await command('GET', 'vanishing'), '3', 'nothing is added');
  }
});

t.test('after a connection was lost every counter gets its expiry again', async (t) => {
  const store = await started(t);
  await take(store, [makeHit('failed over')]);
  // As on a replica that received INCRBY, but not EXPIRE, before it became the primary.
  await command('PERSIST', 'failed over');
  await command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await awaitUntil(() => take(store, [makeHit('failed over')]), { what: 'a hit' });
  t.ok(await expires('failed over'));
});

t.test('no counter without expiry is left by losses under load', async (t) => {
  const store = await started(t);
  const keys = Array.from({ length: 50 }, (_, i) => `load ${i}`);
  const load: { running: boolean; count: number } = { running: true, count: 0 };
  const workers = keys.map(async (key) => {
    while (load.running) {
      await take(store, [makeHit(key)]).catch(() => undefined);
      load.count += 1;
      await new Promise(setImmediate);
    }
  });
  for (let i = 0; i < 10; i += 1) {
    const before = load.count;
    await awaitUntil(() => load.count > before + 500, { what: 'load', everyMs: 5 });
    await command('FLUSHALL');
    await command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  }
  load.running = false;
  await Promise.all(workers);
  await awaitUntil(
    async () => (await Promise.all(keys.map((key) => command('TTL', key)))).every((ttl) => ttl !== -1),
    {
      what: 'an expiry for each counter, without further hits',
      timeoutMs: 20_000,
    },
  );
});

/** A server that breaks the connection at one command and refuses another; records all. */
async function startFailingServer(t: Test) {
  const state: { breakAt: string; refuseAt: string; count: number } = { breakAt: '', refuseAt: '', count: 1 };
  const received: string[] = [];
  const { address } = await startInvalidServer(t, (socket) =>
    answerCommands(socket, (words) => {
      const text = words.join(' ');
      if (words[0] !== 'ping') received.push(text);
      if (text === state.breakAt) {
        state.breakAt = '';
        socket.destroy();
        return '';
      }
      if (text === state.refuseAt) {
        state.refuseAt = '';
        return '-MISCONF no disk\r\n';
      }
      return words[0] === 'incrby' ? `:${state.count++}\r\n` : ':1\r\n';
    }),
  );
  return { address, received, state };
}

t.test('a hit without a reply is followed by its expiry on the next connection', async (t) => {
  const { address, received, state } = await startFailingServer(t);
  const store = await started(t, address);
  await take(store, [makeHit('a')]);
  received.length = 0;
  state.breakAt = 'incrby a 2';
  await t.rejects(take(store, [makeHit('a', 2)]), { code: 'backend_failure' });
  await awaitUntil(() => received.length >= 3, { what: 'the expiry' });
  t.same(received, ['incrby a 2', 'incrby a 0', 'expire a 60']);
});

t.test('the expiry of a counter is repeated until Redis confirms it', async (t) => {
  const { address, received, state } = await startFailingServer(t);
  const store = await started(t, address);
  await take(store, [makeHit('a')]);
  received.length = 0;
  state.count = 1;
  state.breakAt = 'expire a 60';
  t.same(await take(store, [makeHit('a')]), [1], 'the request does not wait for it');
  await awaitUntil(() => received.length >= 5, { what: 'the second attempt' });
  t.same(received, ['incrby a 1', 'incrby a 0', 'expire a 60', 'incrby a 0', 'expire a 60']);
});

t.test('a refused expiry is repeated', async (t) => {
  const { address, received, state } = await startFailingServer(t);
  const store = await started(t, address);
  await take(store, [makeHit('a')]);
  received.length = 0;
  state.count = 1;
  state.refuseAt = 'incrby a 0';
  t.same(await take(store, [makeHit('a')]), [1]);
  await awaitUntil(() => received.length >= 5, { what: 'the second attempt' });
  t.same(received, ['incrby a 1', 'incrby a 0', 'expire a 60', 'incrby a 0', 'expire a 60']);
});

t.test('a counter with another unit gets the expiry of that unit', async (t) => {
  const store = await started(t);
  await take(store, [makeHit('shared')]);
  await take(store, [{ ...makeHit('shared'), unit: 'hour', ttlSeconds: 3600 }]);
  t.ok(Number(await command('TTL', 'shared')) > 3000);
});

t.test('keys that are remembered are bounded, in number and length', (t) => {
  const expiries = new Expiries();
  const counter = (key: string) => ({
    ...makeHit(key),
    rate: undefined,
    times: 1,
    isRepeated: false,
    redirections: 0,
    asking: false,
    replyAt: 0,
    expiryReplyAt: 1,
    first: undefined,
    last: undefined,
  });
  const isSetAfterExpire = (key: string): boolean => {
    expiries.onReplies(counter(key), 1, 1);
    return expiries.isSet(counter(key));
  };
  t.ok(isSetAfterExpire('first'));
  t.notOk(isSetAfterExpire('k'.repeat(257)));
  for (let i = 0; i < 50_000; i += 1) isSetAfterExpire(`key ${i}`);
  t.ok(expiries.isSet(counter('first')), 'one generation later');
  for (let i = 50_000; i < 150_000; i += 1) isSetAfterExpire(`key ${i}`);
  t.notOk(expiries.isSet(counter('first')));
  t.end();
});
