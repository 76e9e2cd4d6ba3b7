import { awaitUntil } from '@tollgate/testkit/await-until';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { CircuitBreaker } from '../../src/backends/circuit-breaker.ts';
import { redisFromSettings } from '../support/redis-from-settings.ts';
import { makeHit } from './counter-backend-contract.ts';

/** A breaker of a store whose calls the test settles itself. */
function makeBreaker(failures: number) {
  const clock = fakeClock();
  const calls: PromiseWithResolvers<readonly number[]>[] = [];
  const events: string[] = [];
  const call = (): Promise<readonly number[]> => {
    const pending = Promise.withResolvers<readonly number[]>();
    calls.push(pending);
    return pending.promise;
  };
  const breaker = new CircuitBreaker<string>(
    { add: call, read: call },
    { failures, delayMs: (attempt) => 100 * attempt, nowMs: clock.nowMs },
    {
      onOpen: (error, retryMs) => events.push(`open ${error.message} ${retryMs}`),
      onClose: () => events.push('close'),
      onReject: () => events.push('reject'),
    },
  );
  /** Sends a hit, which is `sent`, or rejected with a message. */
  const send = (): Promise<string> => {
    const before = calls.length;
    const counts = breaker.add(['hit']);
    counts.catch(() => undefined);
    return calls.length > before ? Promise.resolve('sent') : counts.then(String, (error) => error.message);
  };
  const settle = async (index: number, error?: string): Promise<void> => {
    error === undefined ? calls[index]?.resolve([1]) : calls[index]?.reject(new Error(error));
    await calls[index]?.promise.catch(() => undefined);
  };
  return { breaker, clock, events, send, settle };
}

t.test('consecutive failures open the circuit, and one probe at a time decides', async (t) => {
  const { clock, events, send, settle } = makeBreaker(2);
  for (let i = 0; i < 5; i += 1) t.equal(await send(), 'sent');
  await settle(0, 'late');
  await settle(1);
  await settle(2, 'down');
  t.same(events, [], 'a success between two failures');
  await settle(3, 'gone');
  t.same(events, ['open gone 100']);
  t.match(await send(), /^the circuit breaker is open: gone$/);
  await settle(4);
  t.match(await send(), /gone/, 'a success of before says nothing');

  clock.advance(100);
  t.equal(await send(), 'sent', 'the probe');
  t.match(await send(), /gone/, 'others do not wait for it');
  await settle(5, 'still down');
  t.match(await send(), /still down/);
  clock.advance(199);
  t.match(await send(), /still down/, 'the second delay is longer');
  clock.advance(1);
  t.equal(await send(), 'sent');
  await settle(6);
  t.equal(await send(), 'sent');
  t.same(
    events.filter((event) => event !== 'reject'),
    ['open gone 100', 'close'],
  );
  t.equal(events.length, 7, 'five were rejected');
});

t.test('other calls of the store are guarded by the same circuit', async (t) => {
  const { breaker, clock, events, send } = makeBreaker(1);
  await t.rejects(
    breaker.guard(() => Promise.reject(new Error('down'))),
    { message: 'down' },
  );
  t.match(await send(), /^the circuit breaker is open: down$/);
  await t.rejects(
    breaker.guard(() => Promise.resolve('answer')),
    { message: /is open: down$/ },
  );
  clock.advance(100);
  t.equal(await breaker.guard(() => Promise.resolve('answer')), 'answer', 'the probe');
  t.equal(await send(), 'sent');
  t.same(events, ['open down 100', 'reject', 'reject', 'close']);
});

t.test('another server, or one that is retired, starts with a closed circuit', async (t) => {
  const { breaker, events, send, settle } = makeBreaker(1);
  await send();
  await send();
  await settle(0, 'down');
  breaker.reset();
  t.equal(await send(), 'sent');
  await settle(1, 'of the old server');
  t.same(events, ['open down 100', 'close']);
  void breaker.add([]);
  await settle(3, 'not a failure of the store');
  await settle(2, 'down');
  breaker.retire();
  await send();
  await settle(4, 'closed');
  t.equal(await send(), 'sent');
  t.same(events, ['open down 100', 'close', 'open down 100', 'close'], 'an empty call is no failure');
});

t.test('a hanging Redis fails requests at once, until a probe succeeds and counts go on', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const { backend, stats, logLines } = await redisFromSettings(t, {
    KVSTORE_URL: redis.address,
    KVSTORE_TIMEOUT: '100ms',
    KVSTORE_BREAKER_FAILURES: '3',
    KVSTORE_BREAKER_INTERVAL: '300ms',
    KVSTORE_BREAKER_MAX_INTERVAL: '300ms',
  });
  await backend.start();
  const open = stats.gauge('ratelimit.redis_pool.breaker_open');
  const rejected = stats.counter('ratelimit.redis_pool.breaker_rejected');
  t.same([open.value, rejected.value], [0, 0]);
  t.same(await backend.add([makeHit('k')]), [1]);
  process.kill(redis.pid, 'SIGSTOP');
  t.teardown(() => process.kill(redis.pid, 'SIGCONT'));
  const failed = await Promise.allSettled([1, 2, 3].map(() => backend.add([makeHit('hanging')])));
  t.same(
    failed.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  );
  t.equal(open.value, 1);
  await t.rejects(backend.add([makeHit('open')]), { message: /^the circuit breaker is open: .*100ms/ });
  await t.rejects(backend.read([makeHit('open')]), { code: 'backend_failure' });
  t.equal(rejected.value, 2);
  process.kill(redis.pid, 'SIGCONT');
  await awaitUntil(() => backend.add([makeHit('k')]), { what: 'a probe that succeeds' });
  t.equal(open.value, 0);
  t.equal(await redisCommand(redis, 'GET', 'open'), null, 'not sent while it was open');
  const [count] = await backend.add([makeHit('k')]);
  t.equal(await redisCommand(redis, 'GET', 'k'), String(count));
  const changes = logLines.map((line) => line['@message']).filter((text) => /circuit/.test(String(text)));
  t.same(changes, [
    'circuit breaker opened, requests fail without Redis',
    'circuit breaker closed, requests go to Redis again',
  ]);
});
