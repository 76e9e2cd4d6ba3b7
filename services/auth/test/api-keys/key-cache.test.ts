import { randomBytes, randomUUID } from 'node:crypto';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { ApiKeyCache } from '../../src/api-keys/key-cache.ts';
import { createKey, digestKey } from '../../src/api-keys/key-format.ts';
import type { ApiKeyState } from '../../src/api-keys/state-store.ts';

const newKey = () => createKey('tgk', { bytes: randomBytes });

function keyState(own: Partial<ApiKeyState> = {}): ApiKeyState {
  return {
    id: randomUUID(),
    userId: undefined,
    orgId: undefined,
    scopes: [],
    adminScopes: [],
    role: undefined,
    plan: undefined,
    limit: undefined,
    expiresAtMs: undefined,
    networks: undefined,
    metadata: {},
    disabled: false,
    user: undefined,
    organization: undefined,
    ...own,
  };
}

/** A cache over states by digest, and the number of keys in each read. */
function startCache({ capacity = 1_000, maxStalenessMs = 10_000 } = {}) {
  const clock = fakeClock(1_000_000);
  const stored = new Map<string, ApiKeyState>();
  const reads: number[] = [];
  let gate = Promise.resolve();
  const cache = new ApiKeyCache({
    store: {
      async findMany(digests) {
        reads.push(digests.length);
        const found = digests.map((digest) => stored.get(digest));
        await gate;
        return found;
      },
    },
    nowMs: clock.nowMs,
    maxStalenessMs,
    capacity,
  });
  return {
    clock,
    cache,
    reads,
    store: (key: string, state: ApiKeyState) => stored.set(digestKey(key), state),
    remove: (key: string) => stored.delete(digestKey(key)),
    /** Reads wait for the returned function. */
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return resolve;
    },
  };
}

t.test('a key is read once, and again after the bound of staleness', async (t) => {
  const { cache, clock, reads, store } = startCache();
  const key = newKey();
  const state = keyState();
  store(key, state);
  t.equal(cache.recall(key), undefined);
  t.equal(await cache.find(key), state);
  clock.advance(9_999);
  t.equal(cache.recall(key), state);
  clock.advance(1);
  t.equal(cache.recall(key), undefined);
  t.same(reads, [1]);
});

t.test('changes of the key, its user and its organization end the cached state', async (t) => {
  const ids = { id: randomUUID(), userId: randomUUID(), orgId: randomUUID() };
  for (const own of [
    { id: ids.id, changed: ids.id },
    { id: ids.id, userId: ids.userId, changed: ids.userId },
    { id: ids.id, orgId: ids.orgId, changed: ids.orgId },
  ]) {
    const { changed, ...owner } = own;
    const { cache, store } = startCache();
    const key = newKey();
    store(key, keyState(owner));
    const state = await cache.find(key);
    cache.invalidate(['00000000-0000-4000-8000-000000000000']);
    t.equal(cache.recall(key), state, 'another id');
    cache.invalidate([changed]);
    t.equal(cache.recall(key), undefined);
    await cache.find(key);
    cache.invalidate('all');
    t.equal(cache.recall(key), undefined);
  }
});

t.test('a read that a change overtakes is not kept', async (t) => {
  const { cache, reads, store, remove, hold } = startCache();
  const key = newKey();
  const state = keyState();
  store(key, state);
  const release = hold();
  const early = cache.find(key);
  await new Promise((resolve) => setImmediate(resolve));
  t.same(reads, [1], 'sent');
  // The key is revoked while the read is on its way.
  remove(key);
  cache.invalidate([state.id]);
  const late = cache.find(key);
  release();
  t.equal(await early, state, 'the read was sent before the change');
  t.equal(await late, undefined, 'a request after the change does not join it');
  t.equal(cache.recall(key), 'unknown');
});

t.test('concurrent requests for keys share reads', async (t) => {
  const { cache, reads, store } = startCache();
  const keys = [newKey(), newKey(), newKey()];
  for (const key of keys) store(key, keyState());
  await Promise.all([...keys, ...keys].map((key) => cache.find(key)));
  t.same(reads, [3]);
  t.match(cache.stats(), { misses: 3, joins: 3, entries: 3 });
});

t.test('unknown keys are remembered for a second, and do not evict keys in use', async (t) => {
  const { cache, clock, reads, store } = startCache({ capacity: 100 });
  const key = newKey();
  store(key, keyState());
  await cache.find(key);
  const unknown = newKey();
  t.equal(await cache.find(unknown), undefined);
  t.equal(cache.recall(unknown), 'unknown');
  for (let count = 0; count < 1_000; count += 1) await cache.find(newKey());
  t.not(cache.recall(key), undefined);
  t.match(cache.stats(), { entries: 1 });
  t.ok(cache.stats().unknownEntries <= 100, 'the negative cache is bounded');
  const before = reads.length;
  await cache.find(unknown);
  t.equal(reads.length, before + 1, 'an evicted one is read again');
  clock.advance(1_000);
  t.equal(cache.recall(unknown), undefined);
  store(unknown, keyState());
  t.not(await cache.find(unknown), undefined, 'it has been imported');
  t.not(cache.recall(unknown), 'unknown');
});

t.test('200,000 unknown keys leave the heap bounded', async (t) => {
  const { cache } = startCache({ capacity: 10_000 });
  const fill = async (count: number) => {
    for (let done = 0; done < count; done += 500)
      await Promise.all(Array.from({ length: 500 }, () => cache.find(newKey())));
  };
  await fill(20_000);
  t.ok(cache.stats().unknownEntries <= 10_000);
  await fill(180_000);
  const { unknownEntries, entries } = cache.stats();
  t.equal(entries, 0);
  t.ok(unknownEntries > 0 && unknownEntries <= 10_000, `${unknownEntries} entries after 200,000 keys`);
});
