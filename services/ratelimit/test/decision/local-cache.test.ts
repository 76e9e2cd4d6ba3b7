import t from 'tap';
import { LocalCache } from '../../src/decision/local-cache.ts';

const minimumBytes = 512 * 1024;

t.test('a key is kept until its second, exclusively', async (t) => {
  const cache = new LocalCache(minimumBytes);
  cache.add('a', 100, 160);
  t.ok(cache.has('a', 100));
  t.ok(cache.has('a', 159));
  t.notOk(cache.has('a', 160));
  t.notOk(cache.has('b', 100));
  t.match(cache.metrics, { lookupCount: 4, hitCount: 2, missCount: 2, expiredCount: 1, entryCount: 0 });
});

t.test('a key added again is kept for the later time and counted as overwritten', async (t) => {
  const cache = new LocalCache(minimumBytes);
  cache.add('a', 100, 160);
  cache.add('a', 130, 220);
  t.ok(cache.has('a', 200));
  t.match(cache.metrics, { entryCount: 1, overwriteCount: 1 });
});

t.test('averageAccessTime is the mean of the last use of entries', async (t) => {
  const cache = new LocalCache(minimumBytes);
  t.equal(cache.metrics.averageAccessTime, 0);
  cache.add('a', 100, 900);
  cache.add('b', 201, 900);
  t.equal(cache.metrics.averageAccessTime, 150);
  cache.has('a', 301);
  t.equal(cache.metrics.averageAccessTime, 251);
});

t.test('the least recently used entries are evicted when the bytes are used up', async (t) => {
  const cache = new LocalCache(1);
  const key = (i: number) => `${i} `.padEnd(10_000, 'x');
  // Two bytes a character: 26 of them fill the smallest cache there is.
  for (let i = 0; i < 26; i += 1) {
    cache.add(key(i), 100, 900);
  }
  t.equal(cache.metrics.evacuateCount, 0);
  t.ok(cache.has(key(0), 101), 'used again');
  cache.add(key(26), 102, 900);
  t.notOk(cache.has(key(1), 103), 'the one that was not');
  t.ok(cache.has(key(0), 103));
  t.match(cache.metrics, { evacuateCount: 1, entryCount: 26 });
});

t.test('an evicted entry that had expired is counted as expired', async (t) => {
  const cache = new LocalCache(minimumBytes);
  for (let i = 0; i < 30; i += 1) {
    cache.add(`${i} `.padEnd(10_000, 'x'), i, i + 1);
  }
  t.match(cache.metrics, { evacuateCount: 0, expiredCount: 4 });
});

t.test('a flood of keys stays within the bytes', async (t) => {
  const cache = new LocalCache(minimumBytes);
  for (let i = 0; i < 20_000; i += 1) {
    cache.add(`domain_key_value ${i}_1200`, 100, 900);
  }
  t.ok(cache.metrics.entryCount < minimumBytes / 96, `${cache.metrics.entryCount} entries`);
  t.equal(cache.metrics.entryCount + cache.metrics.evacuateCount, 20_000);
});

t.test('a key of more than 65,535 bytes is not stored', async (t) => {
  const cache = new LocalCache(minimumBytes);
  cache.add('x'.repeat(65_535), 100, 900);
  cache.add('y'.repeat(65_536), 100, 900);
  cache.add('ä'.repeat(40_000), 100, 900);
  t.equal(cache.metrics.entryCount, 1);
});
