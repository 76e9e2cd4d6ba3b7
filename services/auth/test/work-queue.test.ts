import { AsyncLocalStorage } from 'node:async_hooks';
import t from 'tap';
import { QueueFull, WorkQueue } from '../src/work-queue.ts';

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
