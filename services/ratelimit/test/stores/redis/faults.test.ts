import type { Rate } from '@tollgate/rules/rule-set';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t, { type Test } from 'tap';
import type { CounterStore, Hit } from '../../../src/stores/counter-store.ts';
import { RedisConnection } from '../../../src/stores/redis/connection.ts';
import { peek, take } from '../../support/counts.ts';
import { answerCommands, standStill, startInvalidServer } from '../../support/invalid-server.ts';
import { redisFromSettings } from '../../support/redis-from-settings.ts';
import { makeHit } from '../counter-store-contract.ts';

async function ownRedis(t: Test, options: Parameters<typeof startRedis>[0] = {}) {
  const server = await startRedis(options);
  t.teardown(server.stop);
  const admin = (...words: string[]) => redisCommand(server, ...words);
  return { server, admin };
}

function counts(store: CounterStore, key: string): Promise<boolean> {
  return take(store, [makeHit(key)]).then(
    () => true,
    () => false,
  );
}

async function countsAgain(store: CounterStore, key = 'again'): Promise<void> {
  await awaitUntil(() => counts(store, key), { what: 'counting again' });
}

/**
 * The count of an unused counter; another one with each attempt, for one that
 * failed may have counted.
 */
async function firstCount(store: CounterStore): Promise<number | undefined> {
  let attempts = 0;
  const add = () => take(store, [makeHit(`first of attempt ${++attempts}`)]);
  return (await awaitUntil(add, { what: 'a count' }))[0];
}

t.test('a Redis restarted under load: requests fail and recover, and no count is wrong', async (t) => {
  const { server } = await ownRedis(t);
  const { store, health, stats, logLines } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  const active = stats.gauge('ratelimit.redis_pool.cx_active');
  let lowest = 0;
  const load: { running: boolean } = { running: true };
  let answered = 0;
  let failed = 0;
  let wrong = 0;
  async function hammer(worker: number): Promise<void> {
    const key = `worker ${worker}`;
    let last = 0;
    while (load.running) {
      try {
        const [own = 0] = await take(store, [makeHit(key), makeHit('shared')]);
        // Once hits have failed they may have been counted or not, and the new Redis starts at
        // nothing.
        wrong += failed > 0 || own === last + 1 ? 0 : 1;
        last = own;
        answered += 1;
      } catch {
        failed += 1;
      }
      lowest = Math.min(lowest, active.value);
      await new Promise(setImmediate);
    }
  }
  const workers = Promise.all(Array.from({ length: 20 }, (_, i) => hammer(i)));
  await awaitUntil(() => answered > 500, { what: 'load' });
  await server.stop();
  await awaitUntil(() => failed > 500, { what: 'failures' });
  await awaitUntil(() => !health.isHealthy(), { what: 'bad health' });
  t.equal(active.value, 0, 'no connection is counted');
  const before = answered;
  const again = await startRedis({ port: server.port });
  t.teardown(again.stop);
  await awaitUntil(() => answered > before + 500, { what: 'answers' });
  load.running = false;
  await workers;
  t.equal(wrong, 0, 'no wrong counts');
  t.equal(lowest, 0, 'the gauge is never negative');
  t.ok(health.isHealthy());
  t.ok(logLines.length < 60, `${logLines.length} lines for ${failed} failures`);
});

t.test('a server that accepts and never answers fails after KVSTORE_TIMEOUT and is retried', async (t) => {
  const state: { silent: boolean } = { silent: true };
  const server = await startInvalidServer(t, (socket) => {
    if (!state.silent) {
      answerCommands(socket, ([name]) => (name === 'incrby' ? ':1\r\n' : '+OK\r\n'));
    }
  });
  const { store } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_TIMEOUT: '30ms',
  });
  const started = store.start();
  await awaitUntil(() => server.accepted() >= 3, { what: 'further attempts' });
  state.silent = false;
  await started;
  t.equal(await firstCount(store), 1);
});

t.test('a received reply counts, even when the process was paused past the timeout', async (t) => {
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name]) => {
      if (name !== 'incrby') return '+OK\r\n';
      standStill(200);
      return ':1\r\n';
    }),
  );
  const { store } = await redisFromSettings(t, { KVSTORE_URL: server.address, KVSTORE_TIMEOUT: '100ms' });
  await store.start();
  await countsAgain(store);
});

t.test('a server that stops responding is reconnected', async (t) => {
  const state: { silent: boolean } = { silent: false };
  const server = await startInvalidServer(t, (socket) => {
    const silentForEver = state.silent;
    answerCommands(socket, ([name]) => {
      if (state.silent || silentForEver) {
        return '';
      }
      return name === 'incrby' ? ':1\r\n' : '+OK\r\n';
    });
  });
  const { store, health } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_TIMEOUT: '50ms',
  });
  await store.start();
  t.equal(await firstCount(store), 1);
  state.silent = true;
  await t.rejects(take(store, [makeHit('a')]), { message: /within 50ms/ });
  await awaitUntil(() => !health.isHealthy(), { what: 'bad health' });
  state.silent = false;
  await countsAgain(store);
  t.ok(health.isHealthy());
});

t.test(
  'Redis paused for longer than KVSTORE_TIMEOUT: every request ends in time, and every hit is counted once',
  async (t) => {
    const { server, admin } = await ownRedis(t);
    const { store } = await redisFromSettings(t, { KVSTORE_URL: server.address, KVSTORE_TIMEOUT: '1s' });
    await store.start();
    await countsAgain(store, 'paused');
    // For longer than the test may take.
    await admin('CLIENT', 'PAUSE', '600000', 'WRITE');
    const counted = await Promise.all(Array.from({ length: 50 }, (_, i) => counts(store, `key ${i}`)));
    t.notOk(counted.includes(true));
    await admin('CLIENT', 'UNPAUSE');
    await countsAgain(store);
    t.equal(await firstCount(store), 1, 'a late reply is not assigned to another request');
  },
);

const bucket: Rate = { algorithm: 'token_bucket', limit: 100, burst: 100, periodSeconds: 60 };

/** A call for each command and script that writes counters. */
const writes: Readonly<Record<string, (store: CounterStore) => Promise<unknown>>> = {
  counter: (store) => take(store, [makeHit('counter')]),
  refund: (store) => take(store, [makeHit('refunded', -1)]),
  algorithm: (store) => take(store, [{ ...makeHit('bucket'), rate: bucket }]),
  'atomic windows': (store) => addWhole(store, makeHit('window')),
  'atomic algorithms': (store) => addWhole(store, { ...makeHit('whole bucket'), rate: bucket }),
};

async function addWhole(store: CounterStore, hit: Hit): Promise<unknown> {
  return await store.takeAllOrNone?.([{ ...hit, capacity: 100, refuses: 'alone' }]);
}

t.test('OOM and NOPERM: requests fail with the error of Redis and keep the connection', async (t) => {
  const { server, admin } = await ownRedis(t, { args: ['--maxmemory-policy', 'noeviction'] });
  const { store, stats } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  await take(store, [makeHit('refunded', 9)]);
  await admin('CONFIG', 'SET', 'maxmemory', '1');
  for (const [name, write] of Object.entries(writes)) {
    await t.rejects(write(store), { code: 'backend_failure', message: /^OOM/ }, name);
  }
  await admin('CONFIG', 'SET', 'maxmemory', '0');
  for (const [name, write] of Object.entries(writes)) await t.resolves(write(store), name);
  await admin('ACL', 'SETUSER', 'default', '-incrby', '-decrby', '-set');
  for (const [name, write] of Object.entries(writes)) {
    await t.rejects(write(store), { code: 'backend_failure', message: /permissions|can't run/ }, name);
  }
  t.equal(stats.counter('ratelimit.redis_pool.cx_total').value, 1);
});

t.test('READONLY: the connection to a demoted primary is replaced', async (t) => {
  const { server, admin } = await ownRedis(t);
  const { store, stats } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  const opened = stats.counter('ratelimit.redis_pool.cx_total');
  for (const [name, write] of Object.entries(writes)) {
    await countsAgain(store, 'refunded');
    await admin('REPLICAOF', '127.0.0.1', '1');
    const before = opened.value;
    await t.rejects(write(store), { code: 'backend_failure', message: /^READONLY/ }, name);
    await awaitUntil(() => opened.value > before, { what: 'a new connection' });
    await admin('REPLICAOF', 'NO', 'ONE');
  }
  await countsAgain(store);
  await admin('REPLICAOF', '127.0.0.1', '1');
  const before = opened.value;
  for (let i = 0; i < 200; i += 1) {
    await counts(store, 'a');
  }
  t.ok(opened.value - before < 50, `${opened.value - before} connections for 200 requests`);
  await admin('REPLICAOF', 'NO', 'ONE');
  await countsAgain(store);
});

t.test('READONLY: Redis 6 has it inside the error of a script', async (t) => {
  const readOnly = `-ERR Error running script (call to f_1): @user_script:2: @user_script: 2: -READONLY You can't write\r\n`;
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name]) => (name?.startsWith('eval') === true ? readOnly : '+OK\r\n')),
  );
  const { store, stats } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  await t.rejects(take(store, [{ ...makeHit('READONLY'), rate: bucket }]), { message: /READONLY/ });
  const opened = stats.counter('ratelimit.redis_pool.cx_total');
  await awaitUntil(() => opened.value >= 2, { what: 'a new connection' });
});

t.test('READONLY: one error replaces all connections', async (t) => {
  const { server, admin } = await ownRedis(t);
  const { store, stats } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_TIMEOUT: '20s',
  });
  await store.start();
  await admin('CLIENT', 'PAUSE', '60000', 'WRITE');
  const paused: Promise<unknown>[] = [];
  for (const waiting of [1, 2, 3]) {
    paused.push(take(store, [makeHit('a')]));
    await awaitUntil(
      async () => String(await admin('INFO', 'clients')).includes(`blocked_clients:${waiting}\r`),
      {
        what: `request ${waiting} on a connection of its own`,
        timeoutMs: 20_000,
      },
    );
  }
  await admin('CLIENT', 'UNPAUSE');
  await Promise.all(paused);
  await admin('REPLICAOF', '127.0.0.1', '1');
  await t.rejects(take(store, [makeHit('a')]), { message: /READONLY/ });
  t.ok(stats.counter('ratelimit.redis_pool.cx_local_close').value >= 3);
});

t.test('a wrong password, a missing one and a wrong database never count anything', async (t) => {
  const { server } = await ownRedis(t, { password: 'right' });
  const open = await startRedis();
  t.teardown(open.stop);
  const cases: readonly (readonly [Record<string, string>, RegExp])[] = [
    [{ KVSTORE_URL: server.address, KVSTORE_AUTH: 'wrong' }, /WRONGPASS/],
    [{ KVSTORE_URL: server.address }, /NOAUTH/],
    [{ KVSTORE_URL: `redis://${open.address}?db=99` }, /out of range/],
  ];
  for (const [env, reason] of cases) {
    const failsToStart = async (): Promise<boolean> => {
      const { store, logLines } = await redisFromSettings(t, {
        ...env,
        KVSTORE_STARTUP_MAX_ELAPSED_TIME: '300ms',
      });
      const failure: unknown = await store.start().catch((error: unknown) => error);
      t.type(failure, Error);
      const log = JSON.stringify(logLines);
      t.notMatch(log, /wrong"/, 'the password is not logged');
      return reason.test(log) && reason.test(String(failure));
    };
    // A busy machine may need more than one: Redis has to answer in that time.
    await awaitUntil(failsToStart, { what: `the reason ${reason}` });
  }
});

t.test('invalid replies fail requests and close the connection', async (t) => {
  let garbage: boolean = false;
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name]) => {
      if (garbage && name === 'incrby') {
        return 'HTTP/1.1 400 Bad Request\r\n\r\n';
      }
      return name === 'incrby' ? ':1\r\n' : '+OK\r\n';
    }),
  );
  const { store } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  garbage = true;
  await t.rejects(take(store, [makeHit('a')]), { code: 'backend_failure' });
  garbage = false;
  await countsAgain(store);
});

t.test('a connection that closes in the middle of replies fails the request', async (t) => {
  let closing: boolean = false;
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name]) => {
      if (name === 'expire' && closing) {
        closing = false;
        socket.destroy();
      }
      return name === 'incrby' ? ':1\r\n' : '+OK\r\n';
    }),
  );
  const { store } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  await take(store, [makeHit('a')]);
  closing = true;
  await t.rejects(take(store, [makeHit('a'), makeHit('b')]), { code: 'backend_failure' });
  t.same(await take(store, [makeHit('a')]), [1], 'the next request finds a new connection');
});

t.test('replies of the wrong type are failures, not counts', async (t) => {
  let reply = '';
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name]) => (name === 'incrby' ? reply : '+OK\r\n')),
  );
  const { store } = await redisFromSettings(t, { KVSTORE_URL: server.address });
  await store.start();
  for (reply of ['+OK\r\n', '$-1\r\n', '*0\r\n', '$0\r\n\r\n']) {
    await t.rejects(take(store, [makeHit('a')]), { code: 'backend_failure' }, JSON.stringify(reply));
  }
});

t.test('an unknown host, a closed port and TLS to a plaintext port end the start in time', async (t) => {
  const { server } = await ownRedis(t);
  for (const url of ['no-such-host..invalid:6379', '127.0.0.1:1', `rediss://${server.address}`]) {
    const failsToStart = async (): Promise<boolean> => {
      const { store } = await redisFromSettings(t, {
        KVSTORE_URL: url,
        KVSTORE_TIMEOUT: '100ms',
        KVSTORE_STARTUP_MAX_ELAPSED_TIME: '400ms',
      });
      const failure: unknown = await store.start().catch((error: unknown) => error);
      t.match(failure, { message: /KVSTORE_STARTUP_MAX_ELAPSED_TIME/ }, url);
      return /KVSTORE_STARTUP_MAX_ELAPSED_TIME.*: ./.test(String(failure));
    };
    // A busy machine may need more than one: an attempt has to fail in that time.
    await awaitUntil(failsToStart, { what: `the reason why ${url} is no server` });
  }
});

t.test('a start without Redis ends when the service stops', async (t) => {
  const { store } = await redisFromSettings(t, {
    KVSTORE_URL: '127.0.0.1:1',
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '0',
  });
  const stopping = new AbortController();
  const started = store.start({ signal: stopping.signal });
  stopping.abort();
  await t.rejects(started);
});

t.test('PING, INCRBY, EXPIRE and GET are the only commands', async (t) => {
  const known: Readonly<Record<string, string>> = {
    ping: '+PONG\r\n',
    incrby: ':1\r\n',
    expire: ':1\r\n',
    get: '$-1\r\n',
  };
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name = '']) => {
      const reply = known[name.toLowerCase()];
      if (reply === undefined) {
        // As twemproxy does with commands it does not know.
        socket.destroy();
      }
      return reply ?? '';
    }),
  );
  const { store } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
  });
  await store.start();
  t.same(await take(store, [makeHit('a')]), [1]);
  t.same(await peek(store, [makeHit('a')]), [0]);
});

t.test('with the per-second instance down, only requests that need it fail', async (t) => {
  const { server } = await ownRedis(t);
  const seconds = await startRedis();
  t.teardown(seconds.stop);
  const { store, health, stats } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: seconds.address,
    KVSTORE_PERSECOND_TIMEOUT: '200ms',
  });
  await store.start();
  await seconds.stop();
  await t.rejects(take(store, [makeHit('a'), { ...makeHit('b'), unit: 'second' }]), {
    code: 'backend_failure',
  });
  t.same(await take(store, [makeHit('c')]), [1]);
  await awaitUntil(() => !health.isHealthy(), { what: 'bad health' });
  t.equal(stats.gauge('ratelimit.redis_per_second_pool.cx_active').value, 0);
  t.ok(stats.gauge('ratelimit.redis_pool.cx_active').value >= 1);
});

t.test('a connection closed while idle is replaced without failing requests', async (t) => {
  const { server, admin } = await ownRedis(t);
  const { store, health, logLines } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_STARTUP_INITIAL_INTERVAL: '1h',
    KVSTORE_STARTUP_MAX_INTERVAL: '1h',
  });
  const changes: boolean[] = [];
  health.onChange((healthy) => changes.push(healthy));
  await store.start();
  await take(store, [makeHit('a')]);
  const before = logLines.length;
  await admin('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  const clients = async () =>
    Number(/connected_clients:(\d+)/.exec(String(await admin('INFO', 'clients')))?.[1]);
  await awaitUntil(async () => (await clients()) >= 2, { what: 'a new connection' });
  t.same(await take(store, [makeHit('a')]), [2]);
  t.same(changes, [], 'health did not flap');
  t.equal(logLines.length, before, 'nor was anything logged');
});

t.test('connections above the limit of Redis are not retried in a loop', async (t) => {
  const { server } = await ownRedis(t, { args: ['--maxclients', '2'] });
  const { store, logLines } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_STARTUP_INITIAL_INTERVAL: '100ms',
    KVSTORE_STARTUP_MAX_INTERVAL: '100ms',
  });
  const other = new RedisConnection({ address: { kind: 'tcp', host: server.host, port: server.port } });
  t.teardown(() => other.close());
  await other.connect();
  await store.start();
  const load: { running: boolean } = { running: true };
  const done = Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      while (load.running) {
        await take(store, [makeHit(`key ${i}`)]);
        await new Promise(setImmediate);
      }
    }),
  );
  const started = performance.now();
  await awaitUntil(() => performance.now() - started > 300, { what: 'some load' });
  load.running = false;
  await done;
  // More of them when the machine stood still meanwhile.
  const most = 12 * Math.ceil((performance.now() - started) / 400);
  t.ok(logLines.length <= most, `${logLines.length} lines logged`);
});
