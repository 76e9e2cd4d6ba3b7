import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder, type TextFolder } from '@tollgate/testkit/folders';
import { type RedisReply, redisCommand, startRedis } from '@tollgate/testkit/redis';
import { startRedisCluster } from '@tollgate/testkit/redis-cluster';
import { startRedisSentinels } from '@tollgate/testkit/redis-sentinel';
import t, { type Test } from 'tap';
import type { CounterStore } from '../../../src/stores/counter-store.ts';
import { take } from '../../support/counts.ts';
import { redisFromSettings } from '../../support/redis-from-settings.ts';
import { makeHit } from '../counter-store-contract.ts';

interface Server {
  command(...words: string[]): Promise<RedisReply>;
}

/** Creates the users `first` and `second`, whose passwords are `one` and `two`. */
async function createUsers(servers: readonly Server[]): Promise<void> {
  for (const { command } of servers) {
    await command('ACL', 'SETUSER', 'first', 'on', '>one', '~*', '&*', '+@all');
    await command('ACL', 'SETUSER', 'second', 'on', '>two', '~*', '&*', '+@all');
  }
}

async function countClients({ command }: Server, user: string): Promise<number> {
  return String(await command('CLIENT', 'LIST')).split(`user=${user} `).length - 1;
}

/** Mounts credentials as Kubernetes does: links into a folder that is replaced as a whole. */
function mount(folder: TextFolder, version: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) folder.write(`${version}/${name}`, text);
  folder.swapLink('..data', version);
  for (const name of Object.keys(files)) folder.swapLink(name, `..data/${name}`);
}

/** Counts without a pause until it is stopped; resolves with what failed. */
function startLoad(store: CounterStore) {
  const failures: unknown[] = [];
  const state: { running: boolean; counted: number } = { running: true, counted: 0 };
  const work = async (worker: number): Promise<void> => {
    while (state.running) {
      await take(
        store,
        ['a', 'b', 'c'].map((key) => makeHit(`${key} ${worker}`)),
      ).then(
        () => {
          state.counted += 1;
        },
        (error: unknown) => failures.push(error),
      );
      await new Promise(setImmediate);
    }
  };
  const workers = Promise.all(Array.from({ length: 20 }, (_, i) => work(i)));
  return {
    counted: () => state.counted,
    async stop() {
      state.running = false;
      await workers;
      return failures;
    },
  };
}

/** Replaces the user `first` under load. No call may fail, also once that user is deleted. */
async function replaceUser(
  t: Test,
  servers: readonly Server[],
  { env, rotate }: { readonly env: Readonly<Record<string, string>>; readonly rotate: () => void },
): Promise<void> {
  const made = await redisFromSettings(t, { KVSTORE_TIMEOUT: '20s', KVSTORE_POOL_SIZE: '4', ...env });
  const { store, stats, logLines } = made;
  await store.start();
  const load = startLoad(store);
  const underLoad = async (): Promise<boolean> => {
    const before = load.counted();
    return awaitUntil(() => load.counted() > before + 200, { what: 'load' });
  };
  await underLoad();
  for (const server of servers) t.ok((await countClients(server, 'first')) > 0);
  rotate();
  const counts = (): Promise<number[]> => Promise.all(servers.map((server) => countClients(server, 'first')));
  const renewed = stats.counter('ratelimit.redis_pool.login_renewed');
  // Redis knows of the login before its reply arrives.
  const isDone = async () => renewed.value > 0 && (await counts()).every((count) => count === 0);
  await awaitUntil(isDone, { what: 'the new login' });
  t.equal(stats.counter('ratelimit.redis_pool.login_refused').value, 0);
  // This closes the connections of the user.
  for (const { command } of servers) await command('ACL', 'DELUSER', 'first');
  await underLoad();
  t.strictSame(await load.stop(), [], 'no call fails');
  t.equal(stats.counter('ratelimit.redis_pool.cx_local_close').value, 0, 'no connection is replaced');
  t.notMatch(JSON.stringify(logLines), /"(one|two)"/);
}

async function startSingle(t: Test) {
  const server = await startRedis();
  t.teardown(server.stop);
  const command = (...words: string[]): Promise<RedisReply> => redisCommand(server, ...words);
  await createUsers([{ command }]);
  return { address: server.address, command };
}

t.test('a single Redis: open connections log in again when the files change', async (t) => {
  const server = await startSingle(t);
  const folder = makeTextFolder(t);
  mount(folder, 'v1', { username: 'first\n', password: 'one\n' });
  await replaceUser(t, [server], {
    env: {
      KVSTORE_URL: server.address,
      KVSTORE_AUTH_FILE: join(folder.path, 'password'),
      KVSTORE_AUTH_USERNAME_FILE: join(folder.path, 'username'),
    },
    rotate: () => mount(folder, 'v2', { username: 'second\n', password: 'two\n' }),
  });
});

t.test('the Redis for seconds has credentials of its own', async (t) => {
  const main = await startSingle(t);
  const perSecond = await startSingle(t);
  const folder = makeTextFolder(t);
  folder.write('auth', 'second:two');
  const { store } = await redisFromSettings(t, {
    KVSTORE_URL: main.address,
    KVSTORE_AUTH: 'first:one',
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: perSecond.address,
    REDIS_PERSECOND_AUTH_FILE: join(folder.path, 'auth'),
  });
  await store.start();
  await take(store, [makeHit('a'), { ...makeHit('b'), unit: 'second' }]);
  t.equal(await countClients(main, 'first'), 1);
  t.equal(await countClients(perSecond, 'second'), 1);
});

t.test('a Redis Cluster: open connections to all nodes log in again', async (t) => {
  const cluster = await startRedisCluster();
  t.teardown(cluster.stop);
  await createUsers(cluster.masters);
  const folder = makeTextFolder(t);
  mount(folder, 'v1', { auth: 'first:one\n' });
  await replaceUser(t, cluster.masters, {
    env: {
      KVSTORE_TYPE: 'cluster',
      KVSTORE_URL: cluster.address,
      KVSTORE_AUTH_FILE: join(folder.path, 'auth'),
    },
    rotate: () => mount(folder, 'v2', { auth: 'second:two\n' }),
  });
});

t.test('Redis behind sentinels: connections to the primary and a sentinel log in again', async (t) => {
  const deployment = await startRedisSentinels({ sentinels: 1 });
  t.teardown(deployment.stop);
  const servers = [await deployment.primary(), ...deployment.sentinels];
  await createUsers(servers);
  const folder = makeTextFolder(t);
  mount(folder, 'v1', { auth: 'first:one', sentinel: 'first:one' });
  await replaceUser(t, servers, {
    env: {
      KVSTORE_TYPE: 'sentinel',
      KVSTORE_URL: deployment.address,
      KVSTORE_AUTH_FILE: join(folder.path, 'auth'),
      KVSTORE_SENTINEL_AUTH_FILE: join(folder.path, 'sentinel'),
    },
    rotate: () => mount(folder, 'v2', { auth: 'second:two', sentinel: 'second:two' }),
  });
});

t.test('open connections keep their login when Redis refuses changed credentials', async (t) => {
  const server = await startSingle(t);
  const folder = makeTextFolder(t);
  folder.write('auth', 'first:one');
  const { store, stats, logLines } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_AUTH_FILE: join(folder.path, 'auth'),
  });
  await store.start();
  const load = startLoad(store);
  folder.write('auth', 'first:wrong-secret');
  const refused = stats.counter('ratelimit.redis_pool.login_refused');
  await awaitUntil(() => refused.value > 0, { what: 'a refusal' });
  t.strictSame(await load.stop(), [], 'no call fails');
  t.ok((await countClients(server, 'first')) > 0);
  t.match(JSON.stringify(logLines), /WRONGPASS/);
  t.notMatch(JSON.stringify(logLines), /wrong-secret/);
  folder.write('auth', 'second:two');
  await awaitUntil(async () => (await countClients(server, 'first')) === 0, { what: 'the new login' });
});

t.test('a file that becomes unusable is logged, and the last good credentials stay', async (t) => {
  const server = await startSingle(t);
  const folder = makeTextFolder(t);
  folder.write('auth', 'first:one');
  const { store, stats, logLines } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_AUTH_FILE: join(folder.path, 'auth'),
  });
  await store.start();
  const failed = stats.counter('ratelimit.redis_pool.credentials_failed');
  t.equal(failed.value, 0);
  folder.write('auth', '');
  await awaitUntil(() => failed.value > 0, { what: 'the failure' });
  t.match(JSON.stringify(logLines), /credentials of Redis not loaded.*|auth is empty/);
  t.same(await take(store, [makeHit('a')]), [1]);
});

t.test('a file that cannot be used at the start is an error with its setting', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('lines', 'user\npassword\n');
  folder.write('empty', '\n');
  for (const [name, reason] of [
    ['missing', /KVSTORE_AUTH_FILE cannot be used: .*missing cannot be read: ENOENT/],
    ['lines', /lines has more than one line/],
    ['empty', /empty is empty/],
  ] as const) {
    const made = redisFromSettings(t, { KVSTORE_AUTH_FILE: join(folder.path, name) });
    await t.rejects(made, { message: reason });
  }
});

/** A command that runs a file of the folder in Node. */
const nodeCommand = (folder: TextFolder, name: string, ...args: readonly string[]): string =>
  JSON.stringify([process.execPath, join(folder.path, name), ...args]);

t.test('a program provides the credentials, and renews them before they expire', async (t) => {
  const server = await startSingle(t);
  const folder = makeTextFolder(t);
  folder.write(
    'token.mjs',
    "import { readFileSync } from 'node:fs';\nprocess.stdout.write(readFileSync(process.argv[2]));",
  );
  folder.write('auth', '{"username":"first","password":"one","expiresInSeconds":1}');
  await replaceUser(t, [server], {
    env: {
      KVSTORE_URL: server.address,
      KVSTORE_AUTH_COMMAND: nodeCommand(folder, 'token.mjs', join(folder.path, 'auth')),
      KVSTORE_AUTH_COMMAND_TIMEOUT: '20s',
    },
    rotate: () => {
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
      folder.write('auth', JSON.stringify({ username: 'second', password: 'two', expiresAt }));
    },
  });
});

t.test('errors of a program have its exit status and never its output', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('fails.mjs', "console.log('secret-1'); console.error('secret-2'); process.exit(7);");
  folder.write('hangs.mjs', "console.log('secret-3'); setInterval(() => {}, 1000);");
  folder.write(
    'floods.mjs',
    "process.stdout.write('secret-4'.repeat(100_000)); setInterval(() => {}, 1000);",
  );
  folder.write('lines.mjs', "console.log('secret-5'); console.log('secret-6');");
  folder.write('json.mjs', 'console.log(\'{"password":"secret-7","expiresAt":"tomorrow"}\');');
  const cases = [
    ['fails.mjs', '20s', /ended with exit status 7/],
    ['hangs.mjs', '300ms', /did not end within 300ms/],
    ['floods.mjs', '20s', /printed more than 65536 bytes/],
    ['lines.mjs', '20s', /the output of .* is not password, user:password/],
    ['json.mjs', '20s', /the output of .* is not password, user:password/],
  ] as const;
  for (const [name, timeout, reason] of cases) {
    const { store, logLines, stats } = await redisFromSettings(t, {
      KVSTORE_URL: '127.0.0.1:1',
      KVSTORE_AUTH_COMMAND: nodeCommand(folder, name),
      KVSTORE_AUTH_COMMAND_TIMEOUT: timeout,
      KVSTORE_STARTUP_MAX_ELAPSED_TIME: '0',
    });
    const ended = t.rejects(store.start());
    await awaitUntil(() => reason.test(JSON.stringify(logLines)), { what: String(reason) });
    t.ok(stats.counter('ratelimit.redis_pool.credentials_failed').value > 0, name);
    t.notMatch(JSON.stringify(logLines), /secret/);
    await store.close();
    await ended;
  }
});

t.test('a program that does not exist ends the start after its time limit with the reason', async (t) => {
  const { store } = await redisFromSettings(t, {
    KVSTORE_URL: '127.0.0.1:1',
    KVSTORE_AUTH_COMMAND: '/does/not/exist --quietly',
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '100ms',
  });
  await t.rejects(store.start(), {
    message: /within 100ms .*: \/does\/not\/exist cannot be started: ENOENT/,
  });
});

t.test('a subscription is made again with changed credentials', async (t) => {
  const server = await startSingle(t);
  const folder = makeTextFolder(t);
  folder.write('auth', 'first:one');
  const { store, logLines } = await redisFromSettings(t, {
    KVSTORE_URL: server.address,
    KVSTORE_AUTH_FILE: join(folder.path, 'auth'),
  });
  await store.start();
  const messages: string[] = [];
  const stopping = new AbortController();
  t.teardown(() => stopping.abort());
  const onMessage = (message: string): void => void messages.push(message);
  await store.shared?.subscribe({ onMessage, onGap: () => undefined }, stopping.signal);
  folder.write('auth', 'second:two');
  await awaitUntil(async () => (await countClients(server, 'first')) === 0, { what: 'no old login' });
  await awaitUntil(async () => (await countClients(server, 'second')) === 2, { what: 'the subscription' });
  await awaitUntil(
    async () => {
      await store.shared?.publish('changed');
      return messages.includes('changed');
    },
    { what: 'a message' },
  );
  t.notMatch(JSON.stringify(logLines), /not subscribed/);
});
