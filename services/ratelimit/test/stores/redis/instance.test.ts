import t, { type Test } from 'tap';
import { parseRedisAddress } from '../../../src/config/redis-target.ts';
import { StatsRegistry } from '../../../src/metrics/registry.ts';
import { RedisConnection } from '../../../src/stores/redis/connection.ts';
import { PooledInstance } from '../../../src/stores/redis/instance.ts';
import { PoolMetrics } from '../../../src/stores/redis/telemetry.ts';
import { peek, take } from '../../support/counts.ts';
import { answerCommands, startInvalidServer } from '../../support/invalid-server.ts';
import { makeHit } from '../counter-store-contract.ts';

/** An instance whose only connection waits for an answer, until `answer`. */
async function startBusy(t: Test) {
  const commands: string[] = [];
  const held = Promise.withResolvers<() => void>();
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name = '', key = '', addend = '']) => {
      commands.push(name);
      if (name === 'ping') return '+PONG\r\n';
      if (name === 'expire') return ':1\r\n';
      if (key !== 'first') return `:${addend}\r\n`;
      held.resolve(() => socket.write(':1\r\n'));
      return '';
    }),
  );
  const parsed = parseRedisAddress(server.address, 'tcp');
  if (!parsed.ok) throw new TypeError('bad address in a test');
  const instance = new PooledInstance(
    {
      open: () => new RedisConnection({ address: parsed.address }),
      startDelayMs: () => 10,
      reconnectDelayMs: () => 10,
      metrics: new PoolMetrics('redis', new StatsRegistry()),
    },
    { size: 1, onEmpty: 'wait', onEmptyWaitMs: 0, timeoutMs: 60_000, windowMs: 0 },
  );
  t.teardown(() => instance.close());
  await instance.start();
  const first = take(instance, [makeHit('first')]);
  return { instance, first, commands, answer: await held.promise };
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}

t.test('while no connection is free, hits gather in one batch, up to 100,000', async (t) => {
  const { instance, first } = await startBusy(t);
  const hits = Array.from({ length: 1_000 }, (_, i) => makeHit(`key ${i}`));
  const whole = instance.takeAllOrNone([{ ...makeHit('whole'), capacity: 1, refuses: 'alone' }]);
  const waiting: Promise<unknown>[] = [first, whole];
  for (let i = 0; i < 100; i += 1) {
    waiting.push(take(instance, hits));
    if (i % 10 === 0) {
      await nextTick();
    }
  }
  const tooMany = { message: 'too many requests are waiting for Redis' };
  await t.rejects(take(instance, [makeHit('one more')]), tooMany);
  await t.rejects(peek(instance, [makeHit('one more')]), tooMany);
  const oneMore = instance.takeAllOrNone([{ ...makeHit('one more'), capacity: 1, refuses: 'alone' }]);
  await t.rejects(oneMore, tooMany);
  instance.close();
  const results = await Promise.allSettled(waiting);
  t.ok(results.every((result) => result.status === 'rejected' && result.reason.code === 'backend_failure'));
});

t.test('hits of many ticks are sent together once a connection is free', async (t) => {
  const { instance, first, commands, answer } = await startBusy(t);
  const waiting: Promise<unknown>[] = [];
  for (let i = 0; i < 100; i += 1) {
    waiting.push(take(instance, [makeHit('second')]));
    await nextTick();
  }
  answer();
  t.same(await first, [1]);
  await Promise.all(waiting);
  t.equal(commands.filter((name) => name === 'incrby').length, 2, 'one for each counter');
});

t.test('while no connection is free, at most 64 MiB of keys gather', async (t) => {
  const { instance, first } = await startBusy(t);
  const long = 'k'.repeat(1024 * 1024);
  const waiting = Array.from({ length: 64 }, (_, i) => take(instance, [makeHit(`${long}${i}`)]));
  await t.rejects(take(instance, [makeHit('one more')]), {
    message: 'too many requests are waiting for Redis',
  });
  instance.close();
  const results = await Promise.allSettled([first, ...waiting]);
  t.ok(results.every((result) => result.status === 'rejected'));
});

t.test('without hits nothing is sent', async (t) => {
  const { instance, first, commands, answer } = await startBusy(t);
  t.same(await take(instance, []), []);
  t.same(await peek(instance, []), []);
  await nextTick();
  answer();
  await first;
  t.same(await take(instance, [makeHit('last')]), [1]);
  t.same(commands, ['ping', 'incrby', 'expire', 'incrby', 'expire']);
});
