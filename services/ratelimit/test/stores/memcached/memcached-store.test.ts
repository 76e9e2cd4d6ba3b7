import type { Socket } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { type Memcached, startMemcached } from '@tollgate/testkit/memcached';
import { sendTcp } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import type { StatsRegistry } from '../../../src/metrics/registry.ts';
import { peek, take } from '../../support/counts.ts';
import { standStill, startInvalidServer } from '../../support/invalid-server.ts';
import { memcachedFromSettings } from '../../support/memcached-from-settings.ts';
import { counterBackendContract, makeHit } from '../counter-store-contract.ts';

const servers = await Promise.all([startMemcached(), startMemcached(), startMemcached()]);
const [first] = servers;
const addresses = servers.map(({ address }) => address);
t.teardown(() => Promise.all(servers.map((server) => server.stop())));
t.beforeEach(() => Promise.all(servers.map((server) => tell(server, 'flush_all'))));

async function tell({ host, port }: Memcached, command: string): Promise<string> {
  return (await sendTcp(`${command}\r\n`, { host, port })).trimEnd();
}

/** Does as a memcached when it is greeted, and then what the test wants. */
function answerWith(socket: Socket, answer: () => string): void {
  socket.once('data', () => {
    socket.write('VERSION 1.6.0\r\n');
    socket.on('data', () => socket.write(answer()));
  });
}

async function value(server: Memcached, key: string): Promise<string | undefined> {
  return (await tell(server, `get ${key}`)).split('\r\n')[1];
}

async function started(t: Test, hosts: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const made = await memcachedFromSettings(t, { MCACHE_HOST_PORT: hosts.join(','), ...env });
  await made.store.start();
  return made;
}

async function storeOf(...args: Parameters<typeof started>) {
  return (await started(...args)).store;
}

// memcached counts in unsigned 64 bits and goes on at 0; no limit is that high.
const abilities = { refusesOverflow: false, rates: false, atomic: false };
counterBackendContract(t, 'one memcached', (t) => storeOf(t, [first.address]), abilities);
counterBackendContract(t, 'three memcached', (t) => storeOf(t, addresses), abilities);
counterBackendContract(
  t,
  'one connection to each memcached',
  (t) => storeOf(t, addresses, { MCACHE_MAX_IDLE_CONNS: '1' }),
  abilities,
);

t.test(
  'limiters that share a memcached count every hit once, also when they create a counter concurrently',
  async (t) => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => storeOf(t, [first.address])));
    const counts = await Promise.all(
      stores.flatMap((store) => [take(store, [makeHit('shared')]), take(store, [makeHit('shared', 2)])]),
    );
    t.equal(Math.max(...counts.flat()), 12);
    t.equal(new Set(counts.flat()).size, 8, 'each has a position of its own');
    t.equal(await value(first, 'shared'), '12');
  },
);

t.test('a counter is plain text under its key, with a TTL', async (t) => {
  const { store } = await started(t, [first.address]);
  await take(store, [{ ...makeHit('domain_key_value_1200', 3), ttlSeconds: 75 }]);
  t.equal(await value(first, 'domain_key_value_1200'), '3');
  t.match(await tell(first, 'mg domain_key_value_1200 t'), /^HD t(6\d|7[0-5])$/);
});

t.test('a TTL of more than 30 days is not a date in the past', async (t) => {
  const { store } = await started(t, [first.address]);
  const year = 365 * 24 * 3600;
  await take(store, [{ ...makeHit('year', 3), unit: 'year', ttlSeconds: year }]);
  t.same(await peek(store, [makeHit('year')]), [3]);
  const [, seconds] = /^HD t(\d+)$/.exec(await tell(first, 'mg year t')) ?? [];
  t.ok(Math.abs(Number(seconds) - year) < 120, `lives for ${seconds} s`);
});

t.test('keys that memcached cannot hold are counted under a hash', async (t) => {
  const { store } = await started(t, [first.address]);
  const keys = ['k'.repeat(250), 'k'.repeat(251), 'a b', 'a\tb', 'a\u007fb', 'ä'.repeat(126)];
  await take(
    store,
    keys.map((key) => makeHit(key)),
  );
  t.equal(await value(first, 'k'.repeat(250)), '1', 'the longest key is held as it is');
  // Output of sha256sum for "a b".
  const hash = 'c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65';
  t.equal(await value(first, `tollgate_sha256_${hash}`), '1');
  t.same(
    await take(
      store,
      keys.map((key) => makeHit(key)),
    ),
    keys.map(() => 2),
  );
});

t.test('concurrent hits are one command for each counter', async (t) => {
  const { store } = await started(t, [first.address]);
  await take(store, [makeHit('hot')]);
  await tell(first, 'stats reset');
  await Promise.all(Array.from({ length: 50 }, () => take(store, [makeHit('hot')])));
  t.match(await tell(first, 'stats'), /STAT incr_hits 1\r\n/);
  t.equal(await value(first, 'hot'), '51');
});

t.test('results of memcached are counted', async (t) => {
  const { store, stats } = await started(t, [first.address]);
  await take(store, [makeHit('a'), makeHit('b')]);
  await take(store, [makeHit('a')]);
  await peek(store, [makeHit('a'), makeHit('missing')]);
  const counted = Array.from(stats.counters(), ({ name, tags, value }) => [name, tags?.code, value])
    .filter(([name]) => String(name).startsWith('ratelimit.memcache.'))
    .map(
      ([name, code, value]) => `${String(name).slice('ratelimit.memcache.'.length)} ${code ?? ''} ${value}`,
    );
  t.same(counted, [
    'multiget success 1',
    'multiget error 0',
    'increment success 1',
    'increment miss 2',
    'increment error 0',
    'add success 2',
    'add not_stored 0',
    'add error 0',
    'keys_requested  2',
    'keys_found  1',
    'uncounted_hits  0',
  ]);
});

/**
 * Which of three servers holds a key: the remainder by 3 of the CRC-32 (IEEE) that Python's
 * zlib.crc32 computes.
 */
const places: readonly (readonly [key: string, place: 0 | 1 | 2])[] = [
  ['domain_key_value_1234', 0],
  ['domain_key2_value2_subkey2_subvalue2_1200', 0],
  ['shop_user_ä_1700000040', 2],
  ['tollgate_ip_10.0.0.1_997200', 1],
  ['tollgate_ip_10.0.0.2_997200', 1],
  ['tollgate_ip_10.0.0.3_997200', 0],
  ['d_k_v_950400', 0],
  ['123456789', 2],
];

t.test('with several servers the CRC-32 of the key selects one', async (t) => {
  const { store } = await started(t, addresses);
  await take(
    store,
    places.map(([key]) => makeHit(key)),
  );
  for (const [key, place] of places) {
    for (const [i, server] of servers.entries()) {
      t.equal(await value(server, key), i === place ? '1' : undefined, `${key} in server ${i}`);
    }
  }
});

const gaugeOf = (stats: StatsRegistry, name: string): number | undefined =>
  Array.from(stats.gauges()).find((gauge) => gauge.name === `ratelimit.memcache.${name}`)?.value;

t.test('an unreachable server fails open, is logged once, and counts again once reachable', async (t) => {
  const own = await startMemcached();
  t.teardown(own.stop);
  const { store, logLines, uncounted, stats } = await started(t, [own.address, first.address]);
  // By their CRC-32, key-0 lives in the first server and key-4 in the second.
  t.same(await take(store, [makeHit('key-0'), makeHit('key-4')]), [1, 1]);
  const logged = (msg: string) =>
    logLines.filter((line) => line['@message'] === msg && line.memcached === own.address);
  const lost = () => logged('memcached unreachable, failing open');
  await own.kill();
  t.same(await take(store, [makeHit('key-0', 5), makeHit('key-4'), makeHit('key-0')]), [5, 2, 6]);
  t.equal(uncounted(), 6);
  await awaitUntil(() => lost().length > 0 && gaugeOf(stats, 'unreachable_servers') === 1, {
    what: 'the loss to be noticed',
  });
  t.equal(gaugeOf(stats, 'servers'), 2);
  t.same(await peek(store, [makeHit('key-0'), makeHit('key-4')]), [0, 2]);

  const again = await startMemcached({ port: own.port });
  t.teardown(again.stop);
  await awaitUntil(
    async () => {
      await take(store, [makeHit('key-0')]);
      return (await value(again, 'key-0')) !== undefined;
    },
    { what: 'counting again', timeoutMs: 20_000 },
  );
  await awaitUntil(
    () => logged('memcached reachable again').length === 1 && gaugeOf(stats, 'unreachable_servers') === 0,
    {
      what: 'a log entry for the recovery',
    },
  );
  t.equal(lost().length, 1, 'once for each outage');
});

t.test('a start without a server fails open until the server is reachable', async (t) => {
  const gone = await startMemcached();
  await gone.stop();
  const { store, uncounted } = await started(t, [gone.address]);
  t.same(await take(store, [makeHit('a', 3), makeHit('a')]), [3, 4]);
  t.equal(uncounted(), 4);
  const server = await startMemcached({ port: gone.port });
  t.teardown(server.stop);
  await awaitUntil(
    async () => {
      await take(store, [makeHit('a')]);
      return (await value(server, 'a')) !== undefined;
    },
    { what: 'counting', timeoutMs: 20_000 },
  );
});

t.test('a server that exceeds the timeout fails open and is reconnected', async (t) => {
  const silent = await startInvalidServer(t, (socket) => answerWith(socket, () => ''));
  const { store, uncounted, logLines } = await started(t, [silent.address], {
    MCACHE_TIMEOUT: '50ms',
    MCACHE_MAX_IDLE_CONNS: '1',
  });
  t.same(await take(store, [makeHit('a')]), [1]);
  t.same(await peek(store, [makeHit('a')]), [0]);
  t.equal(uncounted(), 1);
  await awaitUntil(() => silent.accepted() > 1, { what: 'a new connection' });
  await awaitUntil(
    () =>
      logLines.some(
        ({ '@message': msg, err }) =>
          msg === 'memcached failed to count, failing open' && /within 50ms/.test(JSON.stringify(err)),
      ),
    { what: 'a line about it' },
  );
});

t.test('a received reply counts, even when the process was paused past the timeout', async (t) => {
  const server = await startInvalidServer(t, (socket) =>
    answerWith(socket, () => {
      standStill(200);
      return '7\r\n';
    }),
  );
  const { store } = await started(t, [server.address], { MCACHE_TIMEOUT: '100ms' });
  await awaitUntil(async () => (await take(store, [makeHit('a')]))[0] === 7, { what: 'the count' });
});

t.test('invalid replies fail open', async (t) => {
  for (const answer of [
    'ERROR\r\n',
    'SERVER_ERROR out of memory storing object\r\n',
    'HTTP/1.1 400 Bad\r\n',
  ]) {
    const odd = await startInvalidServer(t, (socket) => answerWith(socket, () => answer));
    const { store, uncounted } = await started(t, [odd.address]);
    t.same(await take(store, [makeHit('a', 2)]), [2], answer);
    t.equal(uncounted(), 2);
  }
});

t.test('a server at its connection limit is unreachable, with its error', async (t) => {
  const full = await startInvalidServer(t, (socket) => socket.end('ERROR Too many open connections\r\n'));
  const { store, uncounted, logLines } = await started(t, [full.address]);
  t.same(await take(store, [makeHit('a')]), [1]);
  t.equal(uncounted(), 1);
  t.match(
    logLines.filter((line) => line['@message'] === 'memcached unreachable, failing open'),
    [{ memcached: full.address, err: { message: 'ERROR Too many open connections' } }],
  );
});

t.test('a server other than a memcached is unreachable', async (t) => {
  const web = await startInvalidServer(t, (socket) =>
    socket.on('data', () => socket.write('HTTP/1.1 400 Bad\r\n')),
  );
  const { store, uncounted, logLines } = await started(t, [web.address]);
  t.same(await take(store, [makeHit('a')]), [1]);
  t.equal(uncounted(), 1);
  t.match(JSON.stringify(logLines), /the server is not a memcached/);
});

t.test('an invalid counter value fails open, and other counters of the request count', async (t) => {
  const { store, uncounted } = await started(t, [first.address]);
  await tell(first, 'set bad 0 0 4\r\ntext');
  t.same(await take(store, [makeHit('bad', 2), makeHit('good')]), [2, 1]);
  t.same(await peek(store, [makeHit('bad'), makeHit('good')]), [0, 1]);
  t.same(await take(store, [makeHit('bad', 2), makeHit('good')]), [2, 2]);
  t.equal(uncounted(), 4);
});

t.test('hits above the maximum in flight fail open at once', async (t) => {
  const silent = await startInvalidServer(t, (socket) => answerWith(socket, () => ''));
  const { store, uncounted } = await started(t, [silent.address], { MCACHE_TIMEOUT: '200ms' });
  const many = take(
    store,
    Array.from({ length: 20_000 }, () => makeHit('many')),
  );
  t.same(await take(store, [makeHit('x', 2), makeHit('x')]), [2, 3]);
  t.equal(uncounted(), 3, 'the others are still waiting');
  t.equal((await many).at(-1), 20_000);
});

t.test('closing waits for exchanges in flight, then hits fail open', async (t) => {
  const { store, uncounted } = await started(t, [first.address]);
  const last = take(store, [makeHit('last', 2)]);
  await store.close();
  t.same(await last, [2]);
  t.equal(await value(first, 'last'), '2');
  t.equal(uncounted(), 0);
  t.same(await take(store, [makeHit('last', 2)]), [2]);
  t.equal(uncounted(), 2);
});

t.test('an aborted start ends', async (t) => {
  const mute = await startInvalidServer(t, () => undefined);
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { store } = await memcachedFromSettings(t, {
    MCACHE_HOST_PORT: mute.address,
    MCACHE_TLS: 'true',
    MCACHE_TLS_CACERT: certificates.ca.certFile,
  });
  const stop = new AbortController();
  const starting = store.start({ signal: stop.signal });
  await awaitUntil(() => mute.accepted() > 0, { what: 'an attempt to connect' });
  stop.abort();
  await t.rejects(starting, { message: /stopped while connecting to memcached/ });
});
