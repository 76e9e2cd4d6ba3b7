import { AsyncLocalStorage } from 'node:async_hooks';
import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import { Background, QueueFull, WorkQueue } from '../src/work-queue.ts';

t.test('work beyond the concurrency and the queue length is rejected immediately', async (t) => {
  const queue = new WorkQueue({ concurrency: 2, maxWaiting: 1 });
  const gates = [1, 2, 3].map(() => Promise.withResolvers<void>());
  const ended: number[] = [];
  const runs = gates.map(({ promise }, index) =>
    queue.run(async () => {
      await promise;
      ended.push(index);
    }),
  );
  await t.rejects(
    queue.run(async () => 4),
    QueueFull,
  );
  for (const [index, gate] of gates.entries()) {
    gate.resolve();
    await runs[index];
  }
  t.same(ended, [0, 1, 2]);
  t.equal(await queue.run(async () => 5), 5);
});

t.test('work that had to wait runs in the async context of its caller', async (t) => {
  const queue = new WorkQueue({ concurrency: 1, maxWaiting: 1 });
  const requests = new AsyncLocalStorage<string>();
  const run = (request: string) =>
    requests.run(request, () =>
      queue.run(async () => {
        await new Promise(setImmediate);
        return requests.getStore();
      }),
    );
  t.same(await Promise.all(['first', 'second'].map(run)), ['first', 'second']);
});

t.test('the queue is idle after the last work, including work that other work adds', async (t) => {
  const queue = new WorkQueue({ concurrency: 1, maxWaiting: 1 });
  const ended: string[] = [];
  void queue.run(async () => {
    void queue.run(async () => void ended.push('inner'));
    ended.push('outer');
  });
  await queue.idle();
  t.same(ended, ['outer', 'inner']);
  await queue.idle();
});

function startBackground() {
  const lines: string[] = [];
  const logger = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  });
  return { background: new Background(logger), logs: () => lines.join('') };
}

t.test('close waits for work started by other work', async (t) => {
  const { background } = startBackground();
  const gate = Promise.withResolvers<void>();
  let done = false;
  background.run('outer', async () => {
    await gate.promise;
    background.run('inner', async () => {
      await new Promise(setImmediate);
      done = true;
    });
  });
  const closed = background.close(new AbortController().signal);
  gate.resolve();
  await closed;
  t.ok(done);
});

t.test('close waits for all work, failures are logged', async (t) => {
  const { background, logs } = startBackground();
  const gate = Promise.withResolvers<void>();
  const done: number[] = [];
  for (let number = 0; number < 20; number++)
    background.run('counting', async () => {
      await gate.promise;
      done.push(number);
    });
  background.run('failing', () => Promise.reject(new Error('no way')));
  const closed = background.close(new AbortController().signal);
  gate.resolve();
  await closed;
  t.equal(done.length, 20);
  t.match(logs(), /"work":"failing"/);
  t.match(logs(), /no way/);
});

t.test('close stops waiting when the signal aborts', async (t) => {
  const { background } = startBackground();
  const gate = Promise.withResolvers<void>();
  background.run('waiting', () => gate.promise);
  await background.close(AbortSignal.abort());
  t.pass('it gave up');
  gate.resolve();
});

t.test('work beyond the queue limit is dropped and logged', async (t) => {
  const { background, logs } = startBackground();
  const gate = Promise.withResolvers<void>();
  for (let number = 0; number < 1_006; number++) background.run('waiting', () => gate.promise);
  gate.resolve();
  await background.close(new AbortController().signal);
  t.match(logs(), /QueueFull/);
  t.equal(logs().trim().split('\n').length, 1);
});
