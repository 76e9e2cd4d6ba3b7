import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { preferredPorts } from '../options.ts';
import type { Part, PartContext } from '../parts.ts';
import { startPlatform, untilStopped } from '../platform.ts';
import { PolicyFolder } from '../policies.ts';

/** A part that writes what happens to it in a list. */
function makePart(
  name: string,
  events: string[],
  behaviour: Partial<{ start(): void; runs(): boolean; logs(): string }> = {},
): Part {
  return {
    name,
    hint: `what to do about ${name}`,
    async start() {
      behaviour.start?.();
      events.push(`${name} starts`);
      return {
        detail: `${name} is here`,
        isRunning: () => behaviour.runs?.() ?? true,
        logs: () => behaviour.logs?.() ?? `first line of ${name}\nlast line of ${name}\n`,
        stop: async () => {
          events.push(`${name} stops`);
        },
      };
    },
  };
}

function makeContext(): {
  context: PartContext;
  stop: AbortController;
  text: () => string;
  write: (text: string) => void;
} {
  const stop = new AbortController();
  const written: string[] = [];
  return {
    context: {
      ports: preferredPorts,
      folder: '/nowhere',
      nodePath: 'node',
      policies: new PolicyFolder('/nowhere/policies'),
      jwtSecret: 'a secret of this test',
      signal: stop.signal,
    },
    stop,
    text: () => written.join(''),
    write: (text) => written.push(text),
  };
}

t.test('parts start in order with a line each, and stop in reverse', async (t) => {
  const events: string[] = [];
  const { context, text, write } = makeContext();
  const platform = await startPlatform([makePart('a', events), makePart('b', events)], context, write);
  await platform.stop();
  t.same(events, ['a starts', 'b starts', 'b stops', 'a stops']);
  t.match(
    text(),
    /^starting a … ready in \d+\.\d s \(a is here\)\nstarting b … ready in \d+\.\d s \(b is here\)\n$/,
  );
});

t.test('when a part does not start, earlier parts are stopped and its last lines are shown', async (t) => {
  const events: string[] = [];
  const { context, write } = makeContext();
  const broken = makePart('b', events, {
    start: () => {
      throw new Error(Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n'));
    },
  });
  const failure = await startPlatform([makePart('a', events), broken], context, write).catch(
    (error) => error,
  );
  t.match(failure, { name: 'PartFailure', message: 'b did not start', hint: 'what to do about b' });
  t.equal(failure.lastLines.length, 20);
  t.equal(failure.lastLines.at(-1), 'line 29');
  t.same(events, ['a starts', 'a stops']);
});

t.test('when the demo is stopped while a part starts, all are stopped and no more are started', async (t) => {
  const events: string[] = [];
  const { context, stop, write } = makeContext();
  const slow = makePart('b', events, { start: () => stop.abort(new Error('stopped')) });
  const starting = startPlatform([makePart('a', events), slow, makePart('c', events)], context, write);
  await t.rejects(starting, { message: 'stopped' });
  t.same(events, ['a starts', 'b starts', 'b stops', 'a stops']);
});

t.test('a part that ends by itself ends the wait, with its last lines', async (t) => {
  let runs = true;
  const { context, write } = makeContext();
  const platform = await startPlatform([makePart('a', [], { runs: () => runs })], context, write);
  t.equal(platform.failure(), undefined);
  runs = false;
  await t.rejects(untilStopped(platform, context.signal, write), {
    message: 'a has ended by itself',
    lastLines: ['first line of a', 'last line of a'],
  });
});

t.test('the wait ends when the demo is stopped', async (t) => {
  const { context, stop, write } = makeContext();
  const platform = await startPlatform([makePart('a', [])], context, write);
  const waiting = untilStopped(platform, context.signal, write);
  stop.abort();
  await t.resolves(waiting);
});

t.test('while the demo stays up, it prints new log lines of its parts', async (t) => {
  let logs = 'before\n';
  const { context, stop, text, write } = makeContext();
  const part = makePart('a', [], { logs: () => logs });
  const platform = await startPlatform([part], context, write);
  const waiting = untilStopped(platform, context.signal, write);
  logs += 'one\ntwo\nthr';
  await awaitUntil(() => text().includes('a: two\n'), { what: 'the lines that are whole' });
  logs += 'ee\n';
  await awaitUntil(() => text().includes('a: three\n'), { what: 'the line once it is whole' });
  stop.abort();
  await waiting;
  t.match(text(), /\)\na: one\na: two\na: three\n$/);
});
