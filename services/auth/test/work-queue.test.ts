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
  t.equal(queue.waiting, 1);
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
