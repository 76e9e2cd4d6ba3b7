import type { Rate } from '@tollgate/rules/rule-set';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { CircuitBreaker } from '../../src/stores/circuit-breaker.ts';
import { peek, take } from '../support/counts.ts';
import { redisFromSettings } from '../support/redis-from-settings.ts';
import { makeHit } from './counter-store-contract.ts';

function makeBreaker(failures: number) {
  const clock = fakeClock();
  const events: string[] = [];
  const breaker = new CircuitBreaker(
    { failures, delayMs: (attempt) => 100 * attempt, nowMs: clock.nowMs },
    {
      onOpen: (error, retryMs) => events.push(`open ${error.message} ${retryMs}`),
      onClose: () => events.push('close'),
      onReject: () => events.push('reject'),
    },
  );
  /** Sends a batch of one request, and returns what ends it, or why the request is rejected. */
  const send = (): ((error?: string) => void) | string => {
    const rejection = breaker.reject();
    if (rejection !== undefined) return rejection.message;
    const begun = breaker.begin();
    return (error) => breaker.end(begun, error === undefined ? undefined : new Error(error));
  };
  /** Result of a batch that the open circuit lets through. */
  const sent = (): ((error?: string) => void) => {
    const end = send();
    if (typeof end === 'string') throw new Error(end);
    return end;
  };
  return { breaker, clock, events, send, sent };
}

t.test('consecutive failures open the circuit, and one probe at a time decides', async (t) => {
  const { breaker, clock, events, send, sent } = makeBreaker(2);
  const ends = Array.from({ length: 5 }, sent);
  ends[0]?.('late');
  ends[1]?.();
  ends[2]?.('down');
  t.same(events, [], 'a success between two failures');
  ends[3]?.('gone');
  t.same(events, ['open gone 100']);
  t.match(send(), /^the circuit breaker is open: gone$/);
  ends[4]?.();
  t.match(send(), /gone/, 'a success of before says nothing');

  clock.advance(100);
  t.equal(breaker.begin(), undefined, 'a batch without a new request is no probe');
  const probe = sent();
  t.match(send(), /gone/, 'others do not wait for it');
  t.equal(breaker.begin(), undefined, 'nor does another batch decide');
  probe('still down');
  t.match(send(), /still down/);
  clock.advance(199);
  t.match(send(), /still down/, 'the second delay is longer');
  clock.advance(1);
  sent()();
  sent();
  t.same(
    events.filter((event) => event !== 'reject'),
    ['open gone 100', 'close'],
  );
  t.equal(events.length, 7, 'five were rejected');
});

t.test('another server, or one that is retired, starts with a closed circuit', async (t) => {
  const { breaker, events, sent } = makeBreaker(1);
  const [failed, old] = [sent(), sent()];
  failed('down');
  breaker.reset();
  const later = sent();
  old('of the old server');
  t.same(events, ['open down 100', 'close']);
  later('down');
  breaker.retire();
  sent()('closed');
  sent();
  t.same(events, ['open down 100', 'close', 'open down 100', 'close']);
});

t.test('a hanging Redis fails requests at once, until a probe succeeds and counts go on', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const env = { KVSTORE_URL: redis.address, KVSTORE_TIMEOUT: '300ms' };
  const [patient, eager] = await Promise.all(
    ['1h', '50ms'].map((interval) =>
      redisFromSettings(t, {
        ...env,
        KVSTORE_BREAKER_FAILURES: '3',
        KVSTORE_BREAKER_INTERVAL: interval,
        KVSTORE_BREAKER_MAX_INTERVAL: interval,
      }),
    ),
  );
  if (patient === undefined || eager === undefined) throw new TypeError('two stores were made');
  await Promise.all([patient.store.start(), eager.store.start()]);
  const { store, stats } = patient;
  const open = stats.gauge('ratelimit.redis_pool.breaker_open');
  const rejected = stats.counter('ratelimit.redis_pool.breaker_rejected');
  await awaitUntil(() => take(store, [makeHit('k')]), { what: 'a count' });
  process.kill(redis.pid, 'SIGSTOP');
  t.teardown(() => process.kill(redis.pid, 'SIGCONT'));
  const failed = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) => take(store, [makeHit(`one batch ${i}`)])),
  );
  t.equal(failed.filter(({ status }) => status === 'rejected').length, 20);
  t.same([open.value, rejected.value], [0, 0], 'one batch is one failure');
  for (const key of ['second', 'third']) await t.rejects(take(store, [makeHit(key)]), key);
  t.equal(open.value, 1);
  // A busy machine may take until the repair of the first batch, which is an exchange, too.
  const before = rejected.value;
  await t.rejects(take(store, [makeHit('open')]), { message: /^the circuit breaker is open: / });
  await t.rejects(peek(store, [makeHit('open')]), { code: 'backend_failure' });
  const addWhole = async () =>
    void (await store.takeAllOrNone?.([{ ...makeHit('open'), capacity: 1, refuses: 'alone' }]));
  await t.rejects(addWhole, { message: /circuit breaker is open/ });
  t.same(await take(store, []), [], 'without hits there is nothing to reject');
  t.equal(rejected.value - before, 3);

  const eagerOpen = eager.stats.gauge('ratelimit.redis_pool.breaker_open');
  const opens = () => take(eager.store, [makeHit('eager')]).then(undefined, () => eagerOpen.value === 1);
  await awaitUntil(opens, { what: 'an open circuit' });
  process.kill(redis.pid, 'SIGCONT');
  await awaitUntil(() => take(eager.store, [makeHit('eager')]), { what: 'a probe that succeeds' });
  t.equal(eagerOpen.value, 0);
  const [count] = await awaitUntil(() => take(eager.store, [makeHit('k')]), { what: 'a count' });
  t.equal(await redisCommand(redis, 'GET', 'k'), String(count));
  t.equal(await redisCommand(redis, 'GET', 'open'), null, 'not sent while it was open');
  const changes = eager.logLines
    .map((line) => String(line['@message']))
    .filter((text) => text.includes('circuit'));
  t.same(changes.slice(0, 2), [
    'circuit breaker opened, requests fail without Redis',
    'circuit breaker closed, requests go to Redis again',
  ]);
});

t.test('errors of one key or command do not open the circuit, errors of the server do', async (t) => {
  const redis = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
  t.teardown(redis.stop);
  const { store, stats } = await redisFromSettings(t, {
    KVSTORE_URL: redis.address,
    KVSTORE_BREAKER_FAILURES: '2',
    KVSTORE_BREAKER_INTERVAL: '1h',
    KVSTORE_BREAKER_MAX_INTERVAL: '1h',
  });
  await store.start();
  const open = stats.gauge('ratelimit.redis_pool.breaker_open');
  const rate: Rate = { algorithm: 'token_bucket', limit: 10, burst: 10, periodSeconds: 60 };
  await redisCommand(redis, 'ACL', 'SETUSER', 'default', '-eval', '-evalsha');
  await redisCommand(redis, 'LPUSH', 'list', 'a');
  await redisCommand(redis, 'SET', 'text', 'a');
  for (let i = 0; i < 3; i += 1) {
    await t.rejects(take(store, [{ ...makeHit('bucket'), rate }]), { message: /NOPERM/ });
    await t.rejects(take(store, [makeHit('list')]), { message: /WRONGTYPE/ });
    await t.rejects(peek(store, [makeHit('text')]), { message: /not a number/ });
  }
  t.same(await take(store, [makeHit('good')]), [1]);
  t.equal(open.value, 0);
  await redisCommand(redis, 'ACL', 'SETUSER', 'default', '+eval', '+evalsha');
  await redisCommand(redis, 'CONFIG', 'SET', 'maxmemory', '1');
  await t.rejects(take(store, [{ ...makeHit('bucket'), rate }]), { message: /^OOM/ });
  await t.rejects(take(store, [makeHit('good')]), { message: /^OOM/ });
  t.equal(open.value, 1);
});
