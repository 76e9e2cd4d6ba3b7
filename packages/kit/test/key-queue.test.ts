import t from 'tap';
import { createKeyQueue } from '../src/collections.ts';

t.test('the first key is the one added longest ago', async (t) => {
  const queue = createKeyQueue();
  t.equal(queue.first(), undefined);
  queue.add('a');
  queue.add('b');
  queue.add('a');
  t.equal(queue.first(), 'a');
  queue.delete('a');
  t.equal(queue.first(), 'b');
  queue.delete('b');
  t.equal(queue.first(), undefined);
  queue.add('c');
  t.equal(queue.first(), 'c', 'an emptied queue goes on');
});

t.test('a key deleted and added again is the youngest, even if it was just seen as the first', async (t) => {
  const queue = createKeyQueue();
  for (const key of ['a', 'b', 'c']) queue.add(key);
  t.equal(queue.first(), 'a');
  queue.delete('a');
  queue.add('a');
  const order: (string | undefined)[] = [];
  for (let first = queue.first(); first !== undefined; first = queue.first()) {
    order.push(first);
    queue.delete(first);
  }
  t.same(order, ['b', 'c', 'a']);
});

t.test('it agrees with a plain list over thousands of random steps', async (t) => {
  const queue = createKeyQueue();
  const list: string[] = [];
  let seed = 7;
  for (let step = 0; step < 20_000; step += 1) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    const key = `k${seed % 50}`;
    const at = list.indexOf(key);
    if (seed % 3 === 0) {
      queue.delete(key);
      if (at >= 0) list.splice(at, 1);
    } else {
      queue.add(key);
      if (at < 0) list.push(key);
    }
    if (queue.first() !== list[0]) t.fail(`step ${step}: ${queue.first()} instead of ${list[0]}`);
  }
  t.equal(queue.first(), list[0]);
});
