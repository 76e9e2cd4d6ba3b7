import { createLogger } from '@tollgate/kit/logger';
import { RateLimitResponse_Code as Code } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { createStoreFailures } from '../../src/decision/store-failure.ts';
import { backendFailure } from '../../src/errors.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { makeHit } from '../stores/counter-store-contract.ts';
import { connect, descriptorsOf, type GrpcTestClient } from '../support/grpc-client.ts';
import { descriptor, makeDecider } from '../support/make-decider.ts';
import { startApp } from '../support/start-app.ts';

const rules = {
  'a.yaml': `
domain: a
descriptors:
  - { key: none, rate_limit: { unit: day, requests_per_unit: 9 } }
  - { key: allow, rate_limit: { unit: day, requests_per_unit: 9, on_store_failure: allow } }
  - { key: deny, rate_limit: { unit: day, requests_per_unit: 9, on_store_failure: deny } }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 9, on_store_failure: deny }
  - key: quota
    quota_mode: true
    rate_limit: { unit: day, requests_per_unit: 9, on_store_failure: deny }
  - { key: bucket, rate_limit: { unit: day, requests_per_unit: 9, algorithm: token_bucket, burst: 5, on_store_failure: local } }
  - { key: sliding, rate_limit: { unit: day, requests_per_unit: 9, algorithm: sliding_window, on_store_failure: local } }
  - { key: slots, rate_limit: { unit: day, requests_per_unit: 9, algorithm: concurrency, on_store_failure: local } }
  - { key: local, rate_limit: { unit: day, requests_per_unit: 9, on_store_failure: local } }
  - { key: free, rate_limit: { unlimited: true } }
`,
  'b.yaml': `
domain: b
on_store_failure: deny
descriptors:
  - { key: default, rate_limit: { unit: day, requests_per_unit: 9 } }
  - { key: allow, rate_limit: { unit: day, requests_per_unit: 9, on_store_failure: allow } }
`,
};

async function startWithRedis(t: Test, env: Readonly<Record<string, string>> = {}) {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const started = await startApp(t, {
    rules,
    nowMs: () => 1_000_000_500,
    env: {
      BACKEND_TYPE: 'redis',
      KVSTORE_URL: redis.address,
      KVSTORE_TIMEOUT: '20s',
      LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
      LIMIT_ON_STORE_FAILURE_REPLICAS: '4',
      ...env,
    },
  });
  const client = connect(t, `127.0.0.1:${started.ports.grpc}`);
  return { redis, client, ...started };
}

const ask = (client: GrpcTestClient, domain: string, ...keys: readonly string[]) =>
  client.shouldRateLimit({ domain, descriptors: descriptorsOf(...keys.map((key) => ({ [key]: 'x' }))) });

/** Requests until one is over its limit. */
async function countAllowed(client: GrpcTestClient, key: string): Promise<number> {
  for (let allowed = 0; ; allowed += 1) {
    if ((await ask(client, 'a', key)).overallCode === Code.OVER_LIMIT) return allowed;
  }
}

t.test('without Redis each limit is decided by its policy, and by Redis again afterwards', async (t) => {
  const { redis, client, stats, logLines } = await startWithRedis(t);
  const before = await ask(client, 'a', 'allow');
  t.match(before, { statuses: [{ limitRemaining: 8 }] });
  t.equal(before.dynamicMetadata, undefined);
  await redis.kill();

  const allowed = await ask(client, 'a', 'allow', 'free', 'unknown');
  t.match(allowed, {
    overallCode: Code.OK,
    statuses: [{ currentLimit: { requestsPerUnit: 9 }, limitRemaining: 9 }, {}, {}],
    dynamicMetadata: { store_failure: 'allow' },
  });
  const denied = await ask(client, 'a', 'allow', 'deny');
  t.match(denied, {
    overallCode: Code.OVER_LIMIT,
    statuses: [{ code: Code.OK }, { code: Code.OVER_LIMIT, limitRemaining: 0 }],
    dynamicMetadata: { store_failure: 'allow,deny' },
  });
  t.match(denied.responseHeadersToAdd, [{ value: '9' }, { value: '0' }, { value: '5' }], 'retry soon');
  t.equal((await ask(client, 'a', 'shadow')).overallCode, Code.OK, 'shadow mode never denies');
  t.equal((await ask(client, 'a', 'quota', 'allow')).overallCode, Code.OVER_LIMIT, 'the quota is used up');
  t.equal((await ask(client, 'b', 'default')).overallCode, Code.OVER_LIMIT, 'the policy of the domain');
  t.equal((await ask(client, 'b', 'allow')).overallCode, Code.OK, 'the limit precedes its domain');
  const override = { ...descriptorsOf({ x: 'y' })[0], limit: { requestsPerUnit: 3, unit: 4 } };
  const overridden = await client.shouldRateLimit({ domain: 'b', descriptors: [override] });
  t.equal(overridden.overallCode, Code.OVER_LIMIT, 'an override has the policy of the domain');
  const count = (policy: string) => stats.counter('ratelimit.store_failure', { policy }).value;
  t.same([count('allow'), count('deny'), count('local')], [4, 5, 0]);
  t.match(
    logLines.find((line) => line['@message'] === 'store unavailable, answering by failure policy'),
    { level: 'warning', policy: 'allow', domain: 'a' },
  );

  const errors = stats.counter('ratelimit.service.call.should_rate_limit.redis_error');
  t.equal(errors.value, 0);
  // One limit has no policy.
  await t.rejects(ask(client, 'a', 'allow', 'none'), { message: /Redis/ });
  t.equal(errors.value, 1);

  const again = await startRedis({ port: redis.port });
  t.teardown(again.stop);
  await awaitUntil(async () => (await ask(client, 'a', 'allow')).dynamicMetadata === undefined, {
    what: 'a decision by Redis',
  });
  t.match(await redisCommand(again, 'GET', 'a_allow_x_950400'), /^[1-9]/);
});

t.test('while Redis hangs, local counting allows each limiter its share, by any algorithm', async (t) => {
  const { redis, client, stats } = await startWithRedis(t, {
    KVSTORE_TIMEOUT: '1s',
    KVSTORE_BREAKER_FAILURES: '1',
    KVSTORE_BREAKER_INTERVAL: '20ms',
    KVSTORE_BREAKER_MAX_INTERVAL: '40ms',
  });
  const open = stats.gauge('ratelimit.redis_pool.breaker_open');
  await ask(client, 'a', 'local');
  process.kill(redis.pid, 'SIGSTOP');
  t.teardown(() => process.kill(redis.pid, 'SIGCONT'));
  t.equal(await countAllowed(client, 'local'), 3, 'a fourth of 9');
  t.equal(await countAllowed(client, 'sliding'), 3);
  t.equal(await countAllowed(client, 'slots'), 3);
  t.equal(await countAllowed(client, 'bucket'), 2, 'a fourth of a burst of 5');
  const over = await ask(client, 'a', 'local');
  t.match(over, { statuses: [{ currentLimit: { requestsPerUnit: 9 } }] }, 'the limit as configured');
  t.same(over.dynamicMetadata, { store_failure: 'local' });
  t.equal(open.value, 1);
  await client.shouldRateLimit({
    domain: 'a',
    descriptors: descriptorsOf({ local: 'x' }).map((one) => ({
      ...one,
      hitsAddend: 2n,
      isNegativeHits: true,
    })),
  });
  t.equal((await ask(client, 'a', 'local')).overallCode, Code.OVER_LIMIT, '5 hits less 2, and 1');
  process.kill(redis.pid, 'SIGCONT');
  await awaitUntil(async () => (await ask(client, 'a', 'local')).dynamicMetadata === undefined, {
    what: 'a decision by Redis',
  });
  t.equal((await ask(client, 'a', 'local')).overallCode, Code.OK, 'estimates are not cached');
  t.equal(open.value, 0);
  const { statuses } = await ask(client, 'a', 'local');
  t.equal(
    await redisCommand(redis, 'GET', 'a_local_x_950400'),
    String(9 - (statuses[0]?.limitRemaining ?? 0)),
  );
});

t.test('LIMIT_ON_STORE_FAILURE decides what rules leave open', async (t) => {
  const { redis, client } = await startWithRedis(t, { LIMIT_ON_STORE_FAILURE: 'allow' });
  await redis.kill();
  t.equal((await ask(client, 'a', 'none')).overallCode, Code.OK);
  t.equal((await ask(client, 'b', 'default')).overallCode, Code.OVER_LIMIT);
});

t.test('the local cache of counters over their limit stays in force, and needs no policy', async (t) => {
  const { redis, client } = await startWithRedis(t, { LOCAL_CACHE_SIZE_IN_BYTES: '524288' });
  t.equal(await countAllowed(client, 'none'), 9);
  t.equal(await countAllowed(client, 'allow'), 9);
  await redis.kill();
  t.equal((await ask(client, 'a', 'none')).overallCode, Code.OVER_LIMIT);
  t.match(await ask(client, 'a', 'none', 'deny'), {
    statuses: [{ code: Code.OVER_LIMIT }, { code: Code.OVER_LIMIT }],
    dynamicMetadata: { store_failure: 'deny' },
  });
  t.equal((await ask(client, 'a', 'allow')).overallCode, Code.OVER_LIMIT);
});

const bounded = (atomic: boolean): string => `
domain: d
atomic: ${atomic}
descriptors:
  - { key: denied, rate_limit: { unit: minute, requests_per_unit: 10, on_store_failure: deny } }
  - { key: window, rate_limit: { unit: minute, requests_per_unit: 10, on_store_failure: local } }
  - key: bucket
    rate_limit: { unit: minute, requests_per_unit: 10, algorithm: token_bucket, burst: 7, on_store_failure: local }
  - { key: three, rate_limit: { unit: minute, requests_per_unit: 3, on_store_failure: local } }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1000, on_store_failure: deny }
  - key: shadow_one
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1, on_store_failure: allow }
  - { key: allowed, rate_limit: { unit: minute, requests_per_unit: 1000, on_store_failure: allow } }
  - key: quota_denied
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1000, on_store_failure: deny }
  - key: quota_allowed
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1000, on_store_failure: allow }
  - key: quota
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 3, on_store_failure: local }
`;

/** Replicas that share a store which can fail, and a clock. */
function makeReplicas(
  replicas: number,
  {
    atomic = false,
    ...options
  }: {
    readonly atomic?: boolean;
    readonly stopIncrementWhenOverLimit?: boolean;
    readonly localCache?: boolean;
    readonly quotaMode?: boolean;
  } = {},
) {
  const clock = { nowSeconds: 1_000_020 };
  const memory = new MemoryStore({ nowMs: () => clock.nowSeconds * 1000, maxCounters: 1000 });
  const outage: { isDown: boolean } = { isDown: false };
  const fail = () => Promise.reject(backendFailure('down'));
  const store = {
    take: (hits: Parameters<MemoryStore['take']>[0]) => (outage.isDown ? fail() : memory.take(hits)),
    peek: (hits: Parameters<MemoryStore['peek']>[0]) => (outage.isDown ? fail() : memory.peek(hits)),
    takeAllOrNone: (hits: Parameters<MemoryStore['takeAllOrNone']>[0]) =>
      outage.isDown ? fail() : memory.takeAllOrNone(hits),
  };
  const deciders = Array.from({ length: replicas }, () =>
    makeDecider({
      yaml: bounded(atomic),
      clock,
      store,
      onStoreFailureReplicas: replicas,
      ...options,
    }),
  );
  return { clock, outage, deciders };
}

t.test('an outage that begins with a full counter admits the shares in addition', async (t) => {
  const { outage, deciders } = makeReplicas(3);
  const countAdmitted = async (): Promise<number> => {
    let admitted = 0;
    for (const decider of deciders) {
      for (let i = 0; i < 20; i += 1) {
        const { overallCode } = await decider.ask([descriptor({ window: 'x' })]);
        admitted += overallCode === Code.OK ? 1 : 0;
      }
    }
    return admitted;
  };
  t.equal(await countAdmitted(), 10);
  outage.isDown = true;
  t.equal(await countAdmitted(), 12, '3 × ceil(10 / 3)');
  outage.isDown = false;
  t.equal(await countAdmitted(), 0);
  outage.isDown = true;
  t.equal(await countAdmitted(), 0, 'a second outage grants no second share');
});

t.test('with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT a denied request is not counted locally', async (t) => {
  const { outage, deciders } = makeReplicas(1, { stopIncrementWhenOverLimit: true });
  outage.isDown = true;
  const ask = (...keys: readonly string[]) => deciders[0]?.ask(keys.map((key) => descriptor({ [key]: 'x' })));
  for (let i = 0; i < 20; i += 1) {
    const decision = await ask('window', 'denied');
    t.match(decision, { overallCode: Code.OVER_LIMIT, statuses: [{ limitRemaining: 10 }, {}] });
  }
});

const policies = {
  atomic: { atomic: true },
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: { stopIncrementWhenOverLimit: true },
};

for (const [name, options] of Object.entries(policies)) {
  t.test(
    `${name}: local counters grow with each request that is allowed, whatever else it has`,
    async (t) => {
      const countAllowed = async (
        keys: readonly string[],
        more: { readonly quotaMode?: boolean; readonly refund?: string; readonly cached?: string } = {},
      ) => {
        const { deciders, outage } = makeReplicas(1, {
          ...options,
          localCache: more.cached !== undefined,
          quotaMode: more.quotaMode ?? false,
        });
        const of = (key: string) =>
          descriptor({ [key]: 'x' }, key === more.refund ? { hitsAddend: 1n, isNegativeHits: true } : {});
        for (let i = 0; i < 2; i += 1) await deciders[0]?.ask([of(more.cached ?? 'unknown')]);
        outage.isDown = true;
        let allowed = 0;
        for (let i = 0; i < 20; i += 1) {
          const decision = await deciders[0]?.ask(keys.map(of));
          allowed += decision?.overallCode === Code.OK ? 1 : 0;
        }
        return allowed;
      };
      t.equal(await countAllowed(['three']), 3);
      t.equal(await countAllowed(['three', 'shadow']), 3, 'deny of a limit in shadow mode');
      t.equal(
        await countAllowed(['three', 'shadow_one'], { cached: 'shadow_one' }),
        3,
        'one over in the cache',
      );
      t.equal(await countAllowed(['quota_denied', 'quota', 'three']), 3, 'a quota that is denied');
      t.equal(await countAllowed(['quota_denied', 'quota']), 3, 'quotas without another limit');
      t.equal(await countAllowed(['quota', 'allowed']), 3, 'a limit that is allowed is no quota');
      t.equal(await countAllowed(['quota', 'quota_allowed']), 20, 'a quota that is allowed is left');
      t.equal(await countAllowed(['quota_denied', 'quota_allowed', 'three']), 3);
      t.equal(await countAllowed(['quota_denied', 'three']), 0, 'all quotas are denied');
      t.equal(await countAllowed(['three', 'unknown'], { quotaMode: true }), 20, 'unmatched is a quota');
      t.equal(await countAllowed(['three', 'denied'], { refund: 'denied' }), 3, 'deny of a refund');
      t.equal(await countAllowed(['three', 'denied']), 0);
    },
  );
}

t.test('atomic: a request that a policy denies takes nothing from local counters', async (t) => {
  const { deciders, outage } = makeReplicas(1, { atomic: true });
  outage.isDown = true;
  const ask = (...keys: readonly string[]) => deciders[0]?.ask(keys.map((key) => descriptor({ [key]: 'x' })));
  for (let i = 0; i < 5; i += 1) t.match(await ask('three', 'denied'), { overallCode: Code.OVER_LIMIT });
  t.match(await ask('three', 'quota_allowed'), { overallCode: Code.OK, statuses: [{ limitRemaining: 2 }] });
  t.match(await ask('three', 'quota_denied'), { overallCode: Code.OVER_LIMIT });
  t.match(await ask('three'), { statuses: [{ limitRemaining: 1 }] });
});

t.test('a counter that another request found over its limit meanwhile needs no policy', async (t) => {
  const clock = { nowSeconds: 1_000_020 };
  const memory = new MemoryStore({ nowMs: () => clock.nowSeconds * 1000, maxCounters: 1000 });
  let calls = 0;
  const decider = makeDecider({
    yaml: bounded(false),
    clock,
    localCache: true,
    store: {
      peek: (hits) => memory.peek(hits),
      async take(hits) {
        calls += 1;
        if (calls > 1) return memory.take(hits);
        await decider.ask([descriptor({ window: 'x' })], { hitsAddend: 11 });
        throw backendFailure('down');
      },
    },
  });
  const decision = await decider.ask([descriptor({ window: 'x' })]);
  t.equal(decision.overallCode, Code.OVER_LIMIT);
  t.equal(decision.dynamicMetadata, undefined, 'no policy was used');
});

t.test('the limit is divided by replicas, and local counters are bounded', async (t) => {
  const { shares, counters } = createStoreFailures(
    { onStoreFailure: 'local', onStoreFailureReplicas: 3 },
    { logger: createLogger({ level: 'fatal', format: 'json' }), nowMs: () => 0 },
  );
  t.equal(shares, 3);
  await counters.take(Array.from({ length: 100_100 }, (_, i) => makeHit(`client ${i}`)));
  t.equal(counters.size, 100_000);
});

t.test('outages admit at most replicas × ceil(limit / replicas) more, however often', async (t) => {
  const step = fc.record({
    replica: fc.nat(),
    down: fc.boolean(),
    seconds: fc.constantFrom(0, 0, 0, 1, 15),
    hits: fc.integer({ min: 1, max: 4 }),
    keys: fc.subarray(['window', 'bucket'], { minLength: 1 }),
    others: fc.subarray(['shadow', 'allowed', 'quota_denied', 'quota_allowed']),
  });
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 4 }),
    fc.record({ atomic: fc.boolean(), stopIncrementWhenOverLimit: fc.boolean() }),
    fc.array(step, { minLength: 30, maxLength: 80 }),
    async (replicas, options, steps) => {
      const { clock, outage, deciders } = makeReplicas(replicas, options);
      const start = clock.nowSeconds;
      const admitted = new Map<number, number>();
      const failed = new Set<number>();
      let tokens = 0;
      for (const { replica, down, seconds, hits, keys, others } of steps) {
        clock.nowSeconds += seconds;
        outage.isDown = down;
        const decider = deciders[replica % replicas];
        const minute = Math.floor(clock.nowSeconds / 60);
        if (down) failed.add(minute);
        const descriptors = [...others, ...keys].map((key) => descriptor({ [key]: 'x' }));
        const decision = await decider?.ask(descriptors, { hitsAddend: hits });
        if (decision?.overallCode !== Code.OK) continue;
        if (keys.includes('window')) admitted.set(minute, (admitted.get(minute) ?? 0) + hits);
        if (keys.includes('bucket')) tokens += hits;
      }
      const share = (count: number) => replicas * Math.ceil(count / replicas);
      const windowsHold = [...admitted].every(
        ([minute, hits]) => hits <= 10 + (failed.has(minute) ? share(10) : 0),
      );
      const minutes = (clock.nowSeconds - start) / 60;
      return windowsHold && tokens <= 7 + 10 * minutes + share(7) + share(10) * minutes;
    },
  );
  await t.resolves(fc.assert(property, { numRuns: 150 }));
});
