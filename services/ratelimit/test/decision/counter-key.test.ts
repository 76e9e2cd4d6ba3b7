import type { Entry } from '@tollgate/rules/match';
import type { Rate, Rule } from '@tollgate/rules/rule-set';
import { Windows } from '@tollgate/rules/windows';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { runCounters } from '../../src/cli/counters.ts';
import { keyPrefixes, limitKey, secondsUntilReset } from '../../src/decision/counter-key.ts';
import type { Limit } from '../../src/decision/find-limit.ts';
import { adminToken, startCounterApi } from '../support/counter-api.ts';
import { ruleOfAMinute } from '../support/limit-of-a-minute.ts';

const plain = { cacheKeyPrefix: '', cacheKeyEscape: false };
const escaped = { ...plain, cacheKeyEscape: true };
const entry = (key: string, value: string): Entry => ({ key, value });

type Counted = Partial<Pick<Limit, 'windows'> & Pick<Rule, 'unitSeconds' | 'rate'>>;

function keyOf(
  options: typeof plain,
  domain: string,
  {
    entries,
    nowSeconds = 1_234,
    windows,
    ...counted
  }: { entries: readonly Entry[]; nowSeconds?: number } & Counted,
): string {
  const rule = { ...ruleOfAMinute(1), ...counted };
  return limitKey(options, domain, { rule, windows, keyEntries: entries }, nowSeconds);
}

t.test('the counter of a unit has the key of envoyproxy/ratelimit', async (t) => {
  const cases: readonly (readonly [string, readonly Entry[], unitSeconds: number, nowSeconds: number])[] = [
    ['domain_key_value_1234', [entry('key', 'value')], 1, 1_234],
    [
      'domain_key2_value2_subkey2_subvalue2_1200',
      [entry('key2', 'value2'), entry('subkey2', 'subvalue2')],
      60,
      1_234,
    ],
    ['domain_key_value_997200', [entry('key', 'value')], 3_600, 1_000_000],
    ['domain_key_value_950400', [entry('key', 'value')], 86_400, 1_000_000],
    ['domain_key_value_604800', [entry('key', 'value')], 604_800, 1_000_000],
    ['domain_key__1234', [entry('key', '')], 1, 1_234],
    ['domain_files_files/*_1234', [entry('files', 'files/*')], 1, 1_234],
    ['domain_a_b_c_1234', [entry('a_b', 'c')], 1, 1_234],
    ['domain_k_v_1200', [entry('k', 'v')], 60, 1_200],
    ['domain_k_v_1140', [entry('k', 'v')], 60, 1_199],
  ];
  for (const [key, entries, unitSeconds, nowSeconds] of cases) {
    t.equal(keyOf(plain, 'domain', { entries, unitSeconds, nowSeconds }), key);
  }
  const withPrefix = { ...plain, cacheKeyPrefix: 'prefix_~:' };
  t.equal(keyOf(withPrefix, 'd', { entries: [entry('k', 'v')] }), 'prefix_~:d_k_v_1200');
});

const rate = (algorithm: Rate['algorithm']): Rate => ({ algorithm, limit: 1, burst: 1, periodSeconds: 60 });
const day = Windows.ofCalendar('day', 'America/New_York');
const counted: readonly Counted[] = [
  { unitSeconds: 60 },
  { windows: Windows.ofPeriod(300) },
  { windows: day },
  { rate: rate('token_bucket') },
  { rate: rate('sliding_window') },
  { rate: rate('concurrency') },
];

t.test('escaped keys write ~_ for _ and ~~ for ~, and are otherwise as before', async (t) => {
  const entries = [entry('remote_address', '10.0.0.1'), entry('path', '/~ann/a_b')];
  const texts = counted.map((one) => keyOf(escaped, 'my_shop', { entries, nowSeconds: 100_000, ...one }));
  const start = 'my~_shop_remote~_address_10.0.0.1_path_/~~ann/a~_b_';
  t.strictSame(texts, [
    `${start}99960`,
    `${start}5m_99900`,
    `${start}day~_America/New~_York_${day.at(100_000).start}`,
    `${start}token_bucket`,
    `${start}sliding_window`,
    `${start}concurrency`,
  ]);
  const simple = { entries: [entry('user', 'ann')], rate: rate('token_bucket') };
  t.equal(keyOf(escaped, 'shop', simple), 'shop_user_ann_token_bucket');
  t.equal(keyOf(plain, 'shop', simple), 'shop_user_ann_token_bucket');
});

t.test('no two descriptors have the same escaped key', async (t) => {
  // Texts that could be mistaken for a separator, an escape, or the end of a key.
  const texts = ['', 'a', '_', '~', 'a_a', '~_a', '5m', 'day', 'token'];
  const single = texts.flatMap((key) => texts.map((value) => entry(key, value)));
  const lists = [
    ...single.map((one) => [one]),
    ...single.flatMap((one) => single.map((other) => [one, other])),
  ];
  const keys = new Set<string>();
  const domains = ['a', 'a_a', '~'];
  for (const domain of domains)
    for (const entries of lists)
      for (const one of counted) keys.add(keyOf(escaped, domain, { entries, nowSeconds: 1_200, ...one }));
  t.equal(keys.size, domains.length * lists.length * counted.length);
});

t.test('prefixes of keys end after a part', async (t) => {
  const begin = { entries: [entry('a_b', 'c')], lastKey: 'd_e' };
  t.strictSame(keyPrefixes(plain, 'x', begin), { windows: 'x_a_b_c_d_e_', others: 'x_a~_b_c_d~_e_' });
  t.strictSame(keyPrefixes(escaped, 'x', begin), { windows: 'x_a~_b_c_d~_e_', others: 'x_a~_b_c_d~_e_' });
});

t.test('the time until reset is 1 second to a whole unit, never 0', async (t) => {
  t.equal(secondsUntilReset(1_200, 60), 60);
  t.equal(secondsUntilReset(1_201, 60), 59);
  t.equal(secondsUntilReset(1_259, 60), 1);
  t.equal(secondsUntilReset(1_234, 1), 1);
});

const limits = {
  bucket: 'unit: hour, requests_per_unit: 2, algorithm: token_bucket',
  sliding: 'unit: hour, requests_per_unit: 2, algorithm: sliding_window',
  slots: 'unit: hour, requests_per_unit: 2, algorithm: concurrency',
  window: 'unit: hour, requests_per_unit: 2',
  period: 'period: 90m, requests_per_unit: 2',
  leased: 'unit: hour, requests_per_unit: 4, lease: 50%',
};
const rules = Object.fromEntries(
  ['each', 'atomic'].map((domain) => [
    `${domain}.yaml`,
    `domain: ${domain}\natomic: ${domain === 'atomic'}\ndescriptors:\n${Object.entries(limits)
      .map(
        ([key, limit]) =>
          `  - { key: ${key}, rate_limit: { ${limit} }, descriptors: [{ key: path, rate_limit: { ${limit} } }] }\n`,
      )
      .join('')}`,
  ]),
);
const redis = await startRedis();
t.teardown(redis.stop);
const stores = {
  memory: {},
  redis: { BACKEND_TYPE: 'redis', KVSTORE_URL: redis.address, KVSTORE_SOCKET_TYPE: 'tcp' },
};

for (const [store, env] of Object.entries(stores)) {
  t.test(`${store}: a value with separators does not use up the limit of another descriptor`, async (t) => {
    const withEscape = { ...env, CACHE_KEY_ESCAPE: 'true', LOCAL_CACHE_SIZE_IN_BYTES: '600000' };
    const app = await startCounterApi(t, { rules, env: withEscape });
    for (const domain of ['each', 'atomic']) {
      for (const key of Object.keys(limits)) {
        const attack = { domain, descriptors: [{ entries: [entry(key, 'bob_path_/a')] }] };
        const victim = { domain, descriptors: [{ entries: [entry(key, 'bob'), entry('path', '/a')] }] };
        const send = async (request: object) => {
          const body = JSON.stringify(request);
          const url = `http://127.0.0.1:${app.ports.http}/json`;
          return (await fetch(url, { method: 'POST', body })).status;
        };
        for (let i = 0; i < 4; i += 1) await send(attack);
        t.equal(await send(attack), 429, `${domain} ${key}`);
        const peeked = await app.call('/v1/counters/peek', victim);
        t.match(peeked.json, { descriptors: [{ counter: { count: 0 } }] }, `${domain} ${key}`);
        const reserved = await app.call('/v1/reservations', { ...victim, hits: 2 });
        t.equal(reserved.status, 200);
        await app.call('/v1/reservations/commit', { id: reserved.json.id, hits: 0 });
        t.equal(await send(victim), 200, `${domain} ${key}`);
        const reset = await app.call('/v1/counters/reset', { domain, prefix: [entry(key, 'bob')] });
        t.match(reset.json, { prefixes: [`${domain}_${key}_bob_`] });
        t.equal(await send(attack), 429, 'the reset was for another value');
      }
    }
  });
}

t.test('a reset by prefix finds escaped keys and those of fixed windows', async (t) => {
  const app = await startCounterApi(t, { rules });
  for (const key of Object.keys(limits)) {
    const body = JSON.stringify({ domain: 'each', descriptors: [{ entries: [entry(key, 'a_b')] }] });
    await fetch(`http://127.0.0.1:${app.ports.http}/json`, { method: 'POST', body });
  }
  const reset = (key: string) =>
    runCounters(['reset', '-address', app.base, '-domain', 'each', '-prefix', `${key}=a_b`], {
      ADMIN_TOKEN: adminToken,
    });
  for (const key of Object.keys(limits)) {
    const output = `1 counters were deleted that begin with each_${key}_a_b_ or each_${key}_a~_b_\n`;
    t.match(await reset(key), { output });
  }
});
