import t from 'tap';
import { type Part, type PartFailure, Platform } from '../../src/up/platform.ts';

interface Behaviour {
  readonly start?: () => void;
  readonly ended?: Promise<void>;
  readonly isRunning?: () => boolean;
}

/** A part that writes what happens to it in a list. */
function makePart(name: string, events: string[], behaviour: Behaviour = {}): Part {
  return {
    name,
    label: name,
    hint: `what to do about ${name}`,
    async start({ onLine }) {
      behaviour.start?.();
      events.push(`${name} starts`);
      onLine(`a line of ${name}`);
      return {
        detail: `${name} is here`,
        isRunning: () => behaviour.isRunning?.() ?? true,
        ended: behaviour.ended ?? new Promise(() => {}),
        logs: () => `first line of ${name}\nlast line of ${name}\n`,
        stop: async () => {
          events.push(`${name} stops`);
        },
      };
    },
  };
}

/** Starts parts, and writes what is observed into the list. */
function start(parts: readonly Part[], events: string[] = [], signal = new AbortController().signal) {
  return Platform.start(parts, signal, {
    onReady: ({ name }, detail) => events.push(`${name} is ready: ${detail}`),
    onLine: ({ label }, line) => events.push(`${label}: ${line}`),
  });
}

t.test('parts start in order, with their lines, and stop in reverse', async (t) => {
  const events: string[] = [];
  const platform = await start([makePart('a', events), makePart('b', events)], events);
  await platform.stop();
  t.same(events, [
    ...['a starts', 'a: a line of a', 'a is ready: a is here'],
    ...['b starts', 'b: a line of b', 'b is ready: b is here', 'b stops', 'a stops'],
  ]);
});

t.test('when a part does not start, earlier parts are stopped and its last lines are shown', async (t) => {
  const events: string[] = [];
  const broken = makePart('b', events, {
    start: () => {
      throw new Error(Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n'));
    },
  });
  const failure: PartFailure = await start([makePart('a', events), broken]).catch((error) => error);
  t.match(failure, { name: 'PartFailure', message: 'b did not start', hint: 'what to do about b' });
  t.equal(failure.lastLines.length, 20);
  t.equal(failure.lastLines.at(-1), 'line 29');
  t.same(events, ['a starts', 'a stops']);
});

t.test('when the signal aborts while a part starts, all are stopped and no more are started', async (t) => {
  const events: string[] = [];
  const stop = new AbortController();
  const slow = makePart('b', events, { start: () => stop.abort(new Error('stopped')) });
  const starting = start([makePart('a', events), slow, makePart('c', events)], [], stop.signal);
  await t.rejects(starting, { message: 'stopped' });
  t.same(events, ['a starts', 'b starts', 'b stops', 'a stops']);
});

t.test('a part that ends by itself ends the wait, with its last lines', async (t) => {
  const end = Promise.withResolvers<void>();
  let isRunning = true;
  const part = makePart('a', [], { ended: end.promise, isRunning: () => isRunning });
  const platform = await start([part]);
  t.equal(platform.failure(), undefined);
  const waiting = platform.untilStopped(new AbortController().signal);
  isRunning = false;
  end.resolve();
  await t.rejects(waiting, {
    message: 'a has ended by itself',
    lastLines: ['first line of a', 'last line of a'],
  });
});

t.test('the wait ends when the signal aborts', async (t) => {
  const stop = new AbortController();
  const platform = await start([makePart('a', [])]);
  const waiting = platform.untilStopped(stop.signal);
  stop.abort();
  await t.resolves(waiting);
});
