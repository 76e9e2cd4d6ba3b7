import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Lifecycle, StoppedWhileStarting } from '@tollgate/kit/lifecycle';
import t, { type Test } from 'tap';
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
    lifecycle: new Lifecycle({ logger, drainTimeoutMs, sleep: clock.sleep }),
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

t.test('start and stop are idempotent', async (t) => {
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

t.test('a start that throws synchronously is a failed start', async (t) => {
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

t.test('a component that starts while the service stops is stopped', async (t) => {
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

t.test('a start that ignores the signal times out and is stopped', async (t) => {
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

t.test('after a stop, nothing starts', async (t) => {
  const { lifecycle, events } = setUp();
  lifecycle.add({ name: 'server', start: () => void events.push('server started') });
  await lifecycle.stop('SIGTERM');
  await t.rejects(lifecycle.start(), StoppedWhileStarting);
  t.same(events, []);
});

t.test('the stopping signal aborts before any component stops', async (t) => {
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

t.test('at the deadline, the signal of a component aborts', async (t) => {
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

t.test('a component can add others while it starts, but not later', async (t) => {
  const { lifecycle, events } = setUp();
  lifecycle.add({ name: 'outer', start: () => lifecycle.add(tracked('inner', events)) });
  await lifecycle.start();
  t.same(events, ['inner started']);
  t.throws(() => lifecycle.add(tracked('late', events)), /late/);
  await lifecycle.stop('SIGTERM');
});

const service = fileURLToPath(new URL('./helpers/child-service.ts', import.meta.url));

type Child = {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves when the child has said the word. */
  saw(word: string): Promise<void>;
  /** Resolves to the exit code, the signal that killed it, and all it wrote. */
  ended(): Promise<{ code: number | null; signal: string | null; out: string; log: string }>;
};

function startService(t: Test, mode: string): Child {
  const child = spawn(process.execPath, [service, mode], { env: {} });
  t.teardown(() => child.kill('SIGKILL'));
  let out = '';
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const closed = once(child, 'close');
  return {
    child,
    async saw(word) {
      while (!out.includes(word))
        await Promise.race([once(child.stdout, 'data'), closed.then(() => Promise.reject(log))]);
    },
    async ended() {
      await closed;
      return { code: child.exitCode, signal: child.signalCode, out, log };
    },
  };
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  t.test(`${signal} stops the components in reverse order and exits with 0`, async (t) => {
    const { child, saw, ended } = startService(t, 'normal');
    await saw('ready');
    child.kill(signal);
    const { code, out, log } = await ended();
    t.equal(code, 0, log);
    t.equal(out, 'ready\nserver stopping\nstore stopped\n');
    t.match(log, `level=info msg=stopped reason=${signal}`);
  });
}

t.test('a second signal ends the process at once with 1', async (t) => {
  const { child, saw, ended } = startService(t, 'never drains');
  await saw('ready');
  child.kill('SIGTERM');
  await saw('server stopping');
  child.kill('SIGINT');
  const { code, out } = await ended();
  t.equal(code, 1);
  t.notMatch(out, 'store stopped');
});

t.test('a signal during the start cancels it, and exits with 0', async (t) => {
  const { child, saw, ended } = startService(t, 'waits while starting');
  await saw('ready');
  child.kill('SIGTERM');
  const { code, out, log } = await ended();
  t.equal(code, 0, log);
  t.match(out, 'store stopped');
});

t.test('a start that fails is logged, stops what had started, and exits with 1', async (t) => {
  const { code, out, log } = await startService(t, 'start fails').ended();
  t.equal(code, 1);
  t.equal(out, 'store stopped\n');
  t.match(log, /level=fatal .*reason="server did not start" err="port taken"/);
});

for (const [mode, pattern] of [
  ['rejects', /level=fatal .*reason="unhandled rejection" err="forgotten promise"/],
  ['rejects with nothing', /level=fatal .*reason="unhandled rejection" err="nothing was thrown"/],
  ['throws', /level=fatal .*reason="uncaught exception" err="broken listener"/],
] as const) {
  t.test(`a service that ${mode} is logged, stopped in order, and exits with 1`, async (t) => {
    const { child, saw, ended } = startService(t, mode);
    await saw('ready');
    child.stdin.write('now\n');
    const { code, out, log } = await ended();
    t.equal(code, 1, log);
    t.match(out, 'store stopped');
    t.match(log, pattern);
  });
}
