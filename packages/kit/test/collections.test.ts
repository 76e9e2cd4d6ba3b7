import t from 'tap';
import { KeyQueue, RecentlyUsed } from '../src/collections.ts';

t.test('the first key is the one added longest ago', async (t) => {
  const queue = new KeyQueue();
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
  const queue = new KeyQueue();
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

t.test('the queue has the same order as a list over thousands of random steps', async (t) => {
  const queue = new KeyQueue();
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

t.test('a value is kept until it is deleted or the cache is cleared', async (t) => {
  const cache = new RecentlyUsed<number>({ capacity: 10 });
  t.equal(cache.get('a'), undefined);
  cache.set('a', 1);
  cache.set('a', 2);
  cache.set('b', 3);
  t.equal(cache.get('a'), 2);
  t.equal(cache.size, 2);
  t.strictSame(cache.keys().sort(), ['a', 'b']);
  cache.delete('a');
  t.equal(cache.get('a'), undefined);
  t.equal(cache.size, 1);
  cache.clear();
  t.equal(cache.get('b'), undefined);
  t.equal(cache.size, 0);
});

t.test('the cache keeps at most its capacity, and at least the half used last', async (t) => {
  const cache = new RecentlyUsed<number>({ capacity: 100 });
  const used: string[] = [];
  let seed = 7;
  for (let step = 0; step < 20_000; step += 1) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    const key = `k${seed % 300}`;
    if (cache.get(key) === undefined) cache.set(key, step);
    const at = used.indexOf(key);
    if (at >= 0) used.splice(at, 1);
    used.push(key);
    if (cache.size > 100) throw new Error(`${cache.size} after ${step} steps`);
    const oldest = used.at(-50);
    // Asking would be a use: only now and then.
    if (step % 97 === 0 && oldest !== undefined) {
      if (cache.get(oldest) === undefined) throw new Error(`${oldest} was forgotten after ${step} steps`);
      used.splice(used.indexOf(oldest), 1);
      used.push(oldest);
    }
  }
  t.ok(cache.size > 50);
});

t.test('an entry in use is not evicted by any number of others', async (t) => {
  const cache = new RecentlyUsed<string>({ capacity: 4 });
  cache.set('kept', 'here');
  for (let n = 0; n < 1_000; n += 1) {
    cache.set(`other ${n}`, '');
    if (cache.get('kept') !== 'here') throw new Error(`forgotten after ${n}`);
  }
  t.equal(cache.get('other 0'), undefined);
});

t.test('entries count with their weight, and one above the capacity is not kept', async (t) => {
  const cache = new RecentlyUsed<string>({
    capacity: 20,
    weigh: (key, value) => key.length + value.length,
  });
  cache.set('a', '12345');
  cache.set('b', '1234567890');
  t.equal(cache.get('b'), undefined, 'more than half of all');
  t.equal(cache.get('a'), '12345');
  for (let n = 0; n < 10; n += 1) cache.set('a', '12345');
  cache.set('c', '123');
  t.equal(cache.get('a'), '12345', 'what is replaced weighs nothing any more');
  cache.set('d', '12345');
  cache.set('e', '12345');
  t.equal(cache.get('a'), undefined);
  t.equal(cache.size, 2);
});
