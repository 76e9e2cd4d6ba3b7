import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { StatsRegistry, type StatsSnapshot } from '../../src/metrics/registry.ts';
import { StatsFlusher, type StatsSink } from '../../src/metrics/sinks.ts';

function recordingSink(timings?: StatsSink['timings']) {
  const events: (StatsSnapshot | string)[] = [];
  const sink: StatsSink = {
    ...(timings === undefined ? {} : { timings }),
    start: async () => void events.push('start'),
    flush: (snapshot) => void events.push(snapshot),
    close: async () => void events.push('close'),
  };
  return { sink, events };
}

function handTimers() {
  const tasks = new Map<number, () => void>();
  return {
    repeatEvery(intervalMs: number, task: () => void) {
      tasks.set(intervalMs, task);
      return () => void tasks.delete(intervalMs);
    },
    intervals: () => [...tasks.keys()],
    fire: (intervalMs: number) => tasks.get(intervalMs)?.(),
  };
}

t.test('at each interval the sink gets what changed', async (t) => {
  const registry = new StatsRegistry();
  const { sink, events } = recordingSink();
  const timers = handTimers();
  const flusher = new StatsFlusher({
    flushIntervalMs: 10_000,
    registry,
    sink,
    nowMs: fakeClock().now,
    repeatEvery: timers.repeatEvery,
  });
  await flusher.start();
  registry.counter('hits').value += 2;
  timers.fire(10_000);
  t.match(events, ['start', { counters: [{ name: 'hits', delta: 2 }] }]);
});

t.test('closing flushes what is left, closes the sink and stops the timers, once', async (t) => {
  const registry = new StatsRegistry();
  const { sink, events } = recordingSink({ max: 10, everyMs: 1000 });
  const timers = handTimers();
  const flusher = new StatsFlusher({
    flushIntervalMs: 10_000,
    registry,
    sink,
    repeatEvery: timers.repeatEvery,
  });
  await flusher.start();
  registry.counter('hits').value += 1;
  await flusher.close();
  await flusher.close();
  t.match(events, ['start', { counters: [{ name: 'hits', delta: 1 }] }, 'close']);
  t.equal(events.length, 3);
  t.strictSame(timers.intervals(), []);
});

t.test('a sink that sends timings gets them sooner than the rest', async (t) => {
  const registry = new StatsRegistry();
  const { sink, events } = recordingSink({ max: 10, everyMs: 1000 });
  const timers = handTimers();
  const flusher = new StatsFlusher({
    flushIntervalMs: 10_000,
    registry,
    sink,
    repeatEvery: timers.repeatEvery,
  });
  await flusher.start();
  registry.counter('hits').value += 1;
  registry.timer('time').record(4);
  timers.fire(1000);
  timers.fire(1000);
  t.strictSame(events, [
    'start',
    { counters: [], gauges: [], timers: [{ name: 'time', tags: undefined, timingsMs: [4] }] },
  ]);
});

t.test('no timings are kept for a sink that does not send them', async (t) => {
  const registry = new StatsRegistry();
  const { sink, events } = recordingSink();
  const timers = handTimers();
  const flusher = new StatsFlusher({
    flushIntervalMs: 10_000,
    registry,
    sink,
    repeatEvery: timers.repeatEvery,
  });
  await flusher.start();
  registry.timer('time').record(4);
  timers.fire(10_000);
  t.match(events, ['start', { timers: [] }]);
  t.strictSame(timers.intervals(), [10_000]);
});

t.test('with statistics disabled the bounds of the registry are enforced', async (t) => {
  const registry = new StatsRegistry({ maxDynamicRules: 1 });
  const clock = fakeClock();
  const timers = handTimers();
  const flusher = new StatsFlusher({
    flushIntervalMs: 10_000,
    registry,
    sink: undefined,
    nowMs: clock.now,
    repeatEvery: timers.repeatEvery,
  });
  await flusher.start();
  registry.dynamicRule('domain', ['old']).totalHits += 1;
  timers.fire(10_000);
  clock.advance(3_600_000);
  timers.fire(10_000);
  t.equal(registry.dynamicRule('domain', ['new']).key, 'domain.new');
  await flusher.close();
});

t.test('a sink that cannot start fails the start', async (t) => {
  const registry = new StatsRegistry();
  const sink: StatsSink = { ...recordingSink().sink, start: () => Promise.reject(new Error('port in use')) };
  const flusher = new StatsFlusher({ flushIntervalMs: 10_000, registry, sink });
  await t.rejects(flusher.start(), /port in use/);
});
