import { setImmediate as turn } from 'node:timers/promises';
import { createLifecycle, type Lifecycle, StoppedWhileStarting } from '@tollgate/kit/lifecycle';
import t from 'tap';
import { createManualSleep, type ManualSleep } from './helpers/manual-sleep.ts';
import { recordingLogger } from './helpers/recording-logger.ts';

const drainTimeoutMs = 30_000;

function setUp(): {
  lifecycle: Lifecycle;
  clock: ManualSleep;
  events: string[];
  lines: Record<string, unknown>[];
} {
  const { logger, lines } = recordingLogger();
  const clock = createManualSleep();
  return {
    lifecycle: createLifecycle({ logger, drainTimeoutMs, sleep: clock.sleep }),
    clock,
    events: [],
    lines,
  };
}

function tracked(name: string, events: string[]) {
  return {
    name,
    start: async () => {
      await turn();
      events.push(`${name} started`);
    },
    stop: async () => {
      await turn();
      events.push(`${name} stopped`);
    },
  };
}

t.test('components start in order, one after the other, and stop in reverse', async (t) => {
  const { lifecycle, events, clock } = setUp();
  for (const name of ['store', 'server', 'health']) lifecycle.add(tracked(name, events));
  lifecycle.add({ name: 'neither starts nor stops' });
  await lifecycle.start();
  t.same(events, ['store started', 'server started', 'health started']);
  const summary = await lifecycle.stop('SIGTERM');
  t.same(events.slice(3), ['health stopped', 'server stopped', 'store stopped']);
  t.same(summary, { reason: 'SIGTERM', failed: false, late: [] });
  t.same(clock.pending(), [], 'no timer is left');
});

t.test('start and stop happen once, however often they are asked for', async (t) => {
  const { lifecycle, events } = setUp();
  lifecycle.add(tracked('server', events));
  await Promise.all([lifecycle.start(), lifecycle.start()]);
  const summaries = await Promise.all([lifecycle.stop('first'), lifecycle.stop('second'), lifecycle.stopped]);
  t.same(events, ['server started', 'server stopped']);
  t.same(
    summaries.map((summary) => summary.reason),
    ['first', 'first', 'first'],
  );
});

t.test('a failed start stops what had started, and rejects with its error', async (t) => {
  const { lifecycle, events, lines } = setUp();
  const failure = new Error('port taken');
  lifecycle.add(tracked('store', events));
  lifecycle.add({ ...tracked('server', events), start: () => Promise.reject(failure) });
  lifecycle.add(tracked('health', events));
  await t.rejects(lifecycle.start(), failure);
  t.same(events, ['store started', 'store stopped'], 'neither the failed one nor the next is stopped');
  t.same(await lifecycle.stopped, { reason: 'server did not start', failed: true, error: failure, late: [] });
  t.equal(lines.filter((line) => line.level === 'fatal').length, 1, 'it is logged once');
});

t.test('a start that throws at once is a failed start', async (t) => {
  const { lifecycle } = setUp();
  lifecycle.add({
    name: 'server',
    start: () => {
      throw new Error('bad address');
    },
  });
  await t.rejects(lifecycle.start(), { message: 'bad address' });
});

t.test('a stop while starting cancels the start in progress and starts nothing more', async (t) => {
  const { lifecycle, events } = setUp();
  lifecycle.add(tracked('store', events));
  lifecycle.add({
    name: 'first configuration',
    start: ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    stop: () => void events.push('never started, hence not stopped'),
  });
  lifecycle.add(tracked('server', events));
  const starting = lifecycle.start();
  while (!events.includes('store started')) await turn();
  const stopping = lifecycle.stop('SIGTERM');
  await t.rejects(starting, StoppedWhileStarting);
  t.same(events, ['store started', 'store stopped']);
  t.same(await stopping, { reason: 'SIGTERM', failed: false, late: [] });
});

t.test('a start that ends well while the service stops is stopped again', async (t) => {
  const { lifecycle, events } = setUp();
  const gate = Promise.withResolvers<void>();
  lifecycle.add({ ...tracked('slow', events), start: () => gate.promise });
  const starting = lifecycle.start();
  const stopping = lifecycle.stop('SIGTERM');
  gate.resolve();
  await t.rejects(starting, StoppedWhileStarting);
  await stopping;
  t.same(events, ['slow stopped']);
});

t.test('a start that ignores the signal is given up after a moment and stopped all the same', async (t) => {
  const { lifecycle, events, clock } = setUp();
  lifecycle.add({ ...tracked('stuck', events), start: () => new Promise(() => undefined) });
  const starting = lifecycle.start();
  const stopping = lifecycle.stop('SIGTERM');
  await turn();
  clock.wake(1_000);
  await t.rejects(starting, StoppedWhileStarting);
  await stopping;
  t.same(events, ['stuck stopped']);
});

t.test('a stop before the start means that nothing ever starts', async (t) => {
  const { lifecycle, events } = setUp();
  lifecycle.add({ name: 'server', start: () => void events.push('server started') });
  await lifecycle.stop('SIGTERM');
  await t.rejects(lifecycle.start(), StoppedWhileStarting);
  t.same(events, []);
});

t.test('stopping is announced before any component is asked to stop', async (t) => {
  const { lifecycle, events } = setUp();
  lifecycle.add({ name: 'server', stop: () => void events.push('server stopped') });
  await lifecycle.start();
  lifecycle.stopping.addEventListener('abort', () => events.push('announced'));
  const stopping = lifecycle.stop('SIGTERM');
  t.same(events, ['announced'], 'at once');
  await stopping;
  t.same(events, ['announced', 'server stopped']);
});

t.test(
  'a component that outlives the deadline is reported late, and those behind it still stop',
  async (t) => {
    const { lifecycle, events, clock, lines } = setUp();
    lifecycle.add(tracked('sink', events));
    lifecycle.add({
      name: 'server',
      stop: () => {
        events.push('server stopping');
        return new Promise(() => undefined);
      },
    });
    await lifecycle.start();
    const stopping = lifecycle.stop('SIGTERM');
    while (!events.includes('server stopping')) await turn();
    clock.wake(drainTimeoutMs);
    while (!clock.pending().includes(1_000)) await turn();
    clock.wake(1_000);
    t.same((await stopping).late, ['server']);
    t.same(events, ['sink started', 'server stopping', 'sink stopped']);
    t.match(
      lines.find((line) => line.level === 'error'),
      { '@message': 'component not stopped in time', component: 'server' },
    );
  },
);

t.test('at the deadline a component is told to cut off what is left', async (t) => {
  const { lifecycle, clock } = setUp();
  lifecycle.add({
    name: 'server',
    stop: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
  });
  await lifecycle.start();
  const stopping = lifecycle.stop('SIGTERM');
  while (!clock.pending().includes(drainTimeoutMs)) await turn();
  clock.wake(drainTimeoutMs);
  t.same((await stopping).late, [], 'in time, if it obeys');
});

t.test('a stop that fails is logged and does not keep the others from stopping', async (t) => {
  const { lifecycle, events, lines } = setUp();
  lifecycle.add(tracked('store', events));
  lifecycle.add({ name: 'server', stop: () => Promise.reject(new Error('no such socket')) });
  await lifecycle.start();
  t.same(await lifecycle.stop('SIGTERM'), { reason: 'SIGTERM', failed: false, late: [] });
  t.same(events, ['store started', 'store stopped']);
  t.match(
    lines.find((line) => line.level === 'error'),
    { '@message': 'component failed to stop', component: 'server', err: { message: 'no such socket' } },
  );
});

t.test('a failure while running stops everything; one while stopping is only logged', async (t) => {
  const { lifecycle, events, lines } = setUp();
  lifecycle.add(tracked('server', events));
  await lifecycle.start();
  const failure = new Error('listener died');
  const stopping = lifecycle.fail('server', failure);
  void lifecycle.fail('store', new Error('another'));
  t.same(await stopping, { reason: 'server', failed: true, error: failure, late: [] });
  t.same(events, ['server started', 'server stopped']);
  t.match(
    lines.find((line) => line['@message'] === 'failure while stopping'),
    { level: 'error', reason: 'store' },
  );
});

t.test('a component may add others while it starts, but nobody may later', async (t) => {
  const { lifecycle, events } = setUp();
  lifecycle.add({ name: 'outer', start: () => lifecycle.add(tracked('inner', events)) });
  await lifecycle.start();
  t.same(events, ['inner started']);
  t.throws(() => lifecycle.add(tracked('late', events)), /late/);
  await lifecycle.stop('SIGTERM');
});
