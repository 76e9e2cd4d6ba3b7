import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { StatsRegistry, type StatsSnapshot } from '../../src/metrics/registry.ts';
import { createSink } from '../../src/metrics/sinks.ts';
import { TagStatsdEncoder } from '../../src/metrics/tag-statsd.ts';

const nothing: StatsSnapshot = { counters: [], gauges: [], timers: [] };
const base = { USE_PUSHSTATS: 'false', USE_TAGSTATSD: 'true', BACKEND_TYPE: 'memory' };
const first = {
  TAGSTATSD_MOGRIFIERS: 'DOMAIN',
  TAGSTATSD_MOGRIFIER_DOMAIN_PATTERN: String.raw`^ratelimit\.service\.rate_limit\.([^.]+)\.(.*)\.([^.]+)$`,
  TAGSTATSD_MOGRIFIER_DOMAIN_NAME: 'ratelimit.$3',
  TAGSTATSD_MOGRIFIER_DOMAIN_TAGS: 'domain:$1,descriptor:$2,literal:$7',
};

function settingsFrom(env: Readonly<Record<string, string>>) {
  const read = readSettings({ ...base, ...env });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.settings;
}

function encode(env: Readonly<Record<string, string>>, snapshot: Partial<StatsSnapshot>): string[] {
  const { extraTags, mogrifiers } = settingsFrom(env);
  return [...new TagStatsdEncoder({ extraTags, mogrifiers }).encode({ ...nothing, ...snapshot })];
}

function counted(name: string) {
  return { counters: [{ name, tags: undefined, value: 9, delta: 2 }] };
}

t.test('counters are differences, timings whole milliseconds, and tags follow the type', async (t) => {
  const lines = encode(
    { EXTRA_TAGS: 'zone:b.c,env:prod' },
    {
      ...counted('hits'),
      gauges: [{ name: 'size', tags: { code: 'ok' }, value: 1.5 }],
      timers: [{ name: 'time', tags: undefined, timingsMs: [3.9, 0.2] }],
    },
  );
  t.strictSame(lines, [
    'hits:2|c|#env:prod,zone:b_c\n',
    'size:1.5|g|#code:ok,env:prod,zone:b_c\n',
    'time:3|ms|#env:prod,zone:b_c\n',
    'time:0|ms|#env:prod,zone:b_c\n',
  ]);
  t.strictSame(encode({}, counted('hits')), ['hits:2|c\n'], 'no tags');
});

t.test('a mogrifier rewrites the name and adds tags with what it captured', async (t) => {
  t.strictSame(
    encode(
      { ...first, EXTRA_TAGS: 'env:prod' },
      counted('ratelimit.service.rate_limit.shop.key_value.sub.total_hits'),
    ),
    ['ratelimit.total_hits:2|c|#env:prod,domain:shop,descriptor:key_value.sub,literal:$7\n'],
  );
  t.strictSame(encode(first, counted('other')), ['other:2|c\n'], 'a name that does not match stays');
});

t.test('of several mogrifiers the first one that matches is used', async (t) => {
  const env = {
    ...first,
    TAGSTATSD_MOGRIFIERS: 'DOMAIN, ANY',
    DOG_STATSD_MOGRIFIER_ANY_PATTERN: 'hits',
    DOG_STATSD_MOGRIFIER_ANY_NAME: 'any',
  };
  t.strictSame(encode(env, counted('ratelimit.service.rate_limit.shop.key.total_hits')), [
    'ratelimit.total_hits:2|c|#domain:shop,descriptor:key,literal:$7\n',
  ]);
  t.strictSame(encode(env, counted('a.hits.b')), ['any:2|c\n'], 'matches anywhere');
});

t.test('a value of a request cannot add a tag', async (t) => {
  t.strictSame(encode(first, counted('ratelimit.service.rate_limit.shop.key_a,admin:true.total_hits')), [
    'ratelimit.total_hits:2|c|#domain:shop,descriptor:key_a_admin:true,literal:$7\n',
  ]);
});

t.test('problems of all mogrifiers are reported together', async (t) => {
  const read = readSettings({
    ...base,
    PORT: 'http',
    TAGSTATSD_MOGRIFIERS: 'A,B',
    TAGSTATSD_MOGRIFIER_A_PATTERN: '(',
    TAGSTATSD_MOGRIFIER_B_PATTERN: 'x',
    TAGSTATSD_MOGRIFIER_B_NAME: 'y',
    TAGSTATSD_MOGRIFIER_B_TAGS: 'key:',
  });
  t.match(read, {
    ok: false,
    problems: [
      { variable: 'PORT' },
      { variable: 'TAGSTATSD_MOGRIFIER_A_PATTERN', expected: 'a regular expression in the syntax of Go' },
      { variable: 'TAGSTATSD_MOGRIFIER_A_NAME', expected: /must be set/ },
      { variable: 'TAGSTATSD_MOGRIFIER_B_TAGS', expected: /a value for each tag/ },
    ],
  });
  t.equal(read.ok ? 0 : read.problems.length, 4);
});

t.test('the sink sends over UDP, whatever STATSD_PROTOCOL says', async (t) => {
  const server = createSocket('udp4');
  t.teardown(() => server.close());
  let received = '';
  server.on('message', (message) => {
    received += message.toString();
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  const settings = settingsFrom({
    ...first,
    STATSD_HOST: '127.0.0.1',
    STATSD_PORT: String(server.address().port),
  });
  const registry = new StatsRegistry();
  registry.rule('shop', ['key']).totalHits += 3;
  const sink = await createSink(settings, {
    registry,
    output: process.stdout,
    logger: createLogger({ level: 'error', format: 'json' }),
  });
  await sink?.start();
  sink?.flush(registry.takeSnapshot(0));
  await awaitUntil(() => received.includes('ratelimit.total_hits:3|c|#domain:shop,descriptor:key'), {
    what: 'the statistics',
  });
  await sink?.close();
});
