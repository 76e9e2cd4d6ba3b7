import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { createTokenBucket } from '../../src/kubernetes/token-bucket.ts';

function makeBucket(options: { ratePerSecond: number; burst: number }) {
  const clock = fakeClock();
  const bucket = createTokenBucket(options, { now: clock.now, sleep: (ms, rest) => clock.sleep(ms, rest) });
  const taken: number[] = [];
  const { signal } = new AbortController();
  const take = async (id: number): Promise<void> => {
    await bucket.take(signal);
    taken.push(id);
  };
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return { clock, bucket, take, taken, settle };
}

t.test('a burst goes at once, the rest at the rate and in order', async (t) => {
  const { clock, take, taken, settle } = makeBucket({ ratePerSecond: 10, burst: 3 });
  const all = Promise.all([1, 2, 3, 4, 5].map(take));
  await settle();
  t.strictSame(taken, [1, 2, 3]);
  clock.advance(99);
  await settle();
  t.strictSame(taken, [1, 2, 3]);
  clock.advance(1);
  await settle();
  t.strictSame(taken, [1, 2, 3, 4]);
  clock.advance(100);
  await all;
});

t.test('a rest earns no more than a burst', async (t) => {
  const { clock, take, taken, settle } = makeBucket({ ratePerSecond: 10, burst: 2 });
  clock.advance(3_600_000);
  const all = Promise.all([1, 2, 3].map(take));
  await settle();
  t.strictSame(taken, [1, 2]);
  clock.advance(100);
  await all;
});

t.test('whoever is told to stop waits no longer', async (t) => {
  const { bucket } = makeBucket({ ratePerSecond: 1, burst: 1 });
  const aborter = new AbortController();
  await bucket.take(aborter.signal);
  const waiting = bucket.take(aborter.signal);
  aborter.abort(new Error('closed'));
  await t.rejects(waiting, { message: 'closed' });
});
