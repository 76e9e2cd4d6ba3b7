import { randomUUID } from 'node:crypto';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import type { Store } from '../../src/app/store.ts';
import { auditEntry } from '../../src/audit/audit-log.ts';
import {
  IdentityCache,
  type IdentityKey,
  type IdentityState,
  type IdentityStateStore,
} from '../../src/ext-authz/identity-cache.ts';
import { changeUser, startSession } from '../helpers/replica.ts';
import { insertUser, metadata, testStore } from '../helpers/test-store.ts';

const at = new Date(metadata.nowMs);

function testCache(kind: string, make: (store: Store) => IdentityCache): void {
  t.test(`${kind}: the state of a user is that of the store`, async (t) => {
    const store = await testStore(t);
    const ada = await insertUser(store, { email: 'ada@example.com' });
    const bannedUntil = new Date('2030-01-01T00:00:00Z');
    await changeUser(store, ada, {
      role: 'editor',
      appMetadata: { plan: 'pro' },
      bannedUntil,
      isAnonymous: true,
    });
    t.same(await make(store).find(ada.id, undefined), {
      role: 'editor',
      appMetadata: { provider: 'email', providers: ['email'], plan: 'pro' },
      isAnonymous: true,
      bannedUntil,
      session: undefined,
      organization: undefined,
    });
  });

  t.test(`${kind}: a session is found until it ends, and only for its user`, async (t) => {
    const store = await testStore(t);
    const states = make(store);
    const ada = await insertUser(store, { email: 'ada@example.com' });
    const eve = await insertUser(store, { email: 'eve@example.com' });
    const sessionId = await startSession(store, ada);
    const [own, others, none] = await Promise.all([
      states.find(ada.id, sessionId),
      states.find(eve.id, sessionId),
      states.find(ada.id, randomUUID()),
    ]);
    t.same(own?.session, { createdAt: at, notAfter: undefined });
    t.equal(others?.role, 'authenticated');
    t.equal(others?.session, undefined);
    t.equal(none?.role, 'authenticated');
    t.equal(none?.session, undefined);
    await store.sessions.end(
      'global',
      { userId: ada.id, sessionId },
      auditEntry(ada, 'logout', { metadata }),
    );
    t.equal((await make(store).find(ada.id, sessionId))?.session, undefined);
  });

  t.test(`${kind}: deleted, soft-deleted and unknown users are not found`, async (t) => {
    const store = await testStore(t);
    const states = make(store);
    const gone = await insertUser(store, { email: 'gone@example.com' });
    await store.users.delete(gone.id, auditEntry(gone, 'user_deleted', { metadata }));
    const hidden = await insertUser(store, { email: 'hidden@example.com' });
    await store.users.softDelete(hidden.id, { at, audit: auditEntry(hidden, 'user_deleted', { metadata }) });
    t.equal(await states.find(gone.id, undefined), undefined);
    t.equal(await states.find(hidden.id, undefined), undefined);
    t.equal(await states.find(randomUUID(), randomUUID()), undefined);
  });

  t.test(`${kind}: invalid ids are not found and do not affect other lookups`, async (t) => {
    const store = await testStore(t);
    const states = make(store);
    const ada = await insertUser(store, { email: 'ada@example.com' });
    const sessionId = await startSession(store, ada);
    const [invalidUser, invalidSession, upperCase] = await Promise.all([
      states.find("' or true --", undefined),
      states.find(ada.id, 'no session'),
      states.find(ada.id.toUpperCase(), sessionId.toUpperCase()),
    ]);
    t.equal(invalidUser, undefined);
    t.match(invalidSession, { role: 'authenticated', session: undefined });
    t.match(upperCase, { role: 'authenticated', session: { createdAt: at } });
  });
}

const aMinuteMs = 60_000;

testCache(
  'with a cache',
  ({ identityStates: store }) => new IdentityCache({ store, nowMs: Date.now, maxStalenessMs: aMinuteMs }),
);
testCache(
  'without a cache',
  ({ identityStates: store }) => new IdentityCache({ store, nowMs: Date.now, maxStalenessMs: 0 }),
);

const ada = randomUUID();
const session = randomUUID();

t.test('a cached user is returned synchronously until the state is too old', async (t) => {
  const { states, clock, reads } = makeStates({ maxStalenessMs: 10_000 });
  const first = states.find(ada, session);
  t.type(first, Promise);
  t.match(await first, { role: 'read 1' });
  t.match(states.find(ada, session), { role: 'read 1' }, 'without a promise');
  clock.advance(9_999);
  t.match(states.find(ada, session), { role: 'read 1' });
  clock.advance(1);
  t.match(await states.find(ada, session), { role: 'read 2' });
  t.same(reads(), [[ada], [ada]]);
  t.match(states.stats(), { hits: 2, misses: 2, entries: 1 });
});

t.test('the age of a state counts from when its read was sent', async (t) => {
  const answers = holdAnswers();
  const { states, clock } = makeStates({ maxStalenessMs: 10_000, store: answers.store });
  const slow = states.find(ada, session);
  await answers.arrived(1);
  clock.advance(9_000);
  answers.give(stateOf('slow'));
  await slow;
  t.match(states.find(ada, session), { role: 'slow' });
  clock.advance(1_000);
  const again = states.find(ada, session);
  t.type(again, Promise);
  await answers.arrived(2);
  answers.give(stateOf('again'));
  t.match(await again, { role: 'again' });
});

t.test('concurrent lookups of a user share a read, and those of one turn a statement', async (t) => {
  const { states, reads } = makeStates({ maxStalenessMs: aMinuteMs });
  const others = Array.from({ length: 20 }, () => randomUUID());
  const answers = await Promise.all([
    ...Array.from({ length: 50 }, () => states.find(ada, session)),
    ...others.map((other) => states.find(other, undefined)),
  ]);
  t.equal(answers.length, 70);
  t.same(reads(), [[ada, ...others]]);
  t.match(states.stats(), { misses: 21, joins: 49 });
});

t.test('each session of a user is read separately', async (t) => {
  const { states, reads } = makeStates({ maxStalenessMs: aMinuteMs });
  await states.find(ada, session);
  await states.find(ada, undefined);
  await states.find(ada, randomUUID());
  t.equal(reads().length, 3);
});

t.test('a cached session is not returned for another user', async (t) => {
  const { states, reads } = makeStates({ maxStalenessMs: aMinuteMs });
  const eve = randomUUID();
  const [first, second] = await Promise.all([states.find(ada, session), states.find(eve, session)]);
  t.match([first, second], [{ role: 'read 1' }, { role: 'read 1' }]);
  t.same(reads(), [[ada, eve]]);
  t.match(states.find(eve, session), { role: 'read 1' });
  t.match(await states.find(ada, session), { role: 'read 2' });
  t.match(await states.find(session, undefined), { role: 'read 3' });
});

t.test('invalidation of a user or of all users causes new reads', async (t) => {
  const { states, reads } = makeStates({ maxStalenessMs: aMinuteMs });
  const other = '00000000-0000-4000-8000-000000000000';
  const changed = '00000000-0000-4000-8000-000000000001';
  const ask = () => Promise.all([states.find(other, undefined), states.find(changed, session)]);
  await ask();
  states.invalidate([changed]);
  await ask();
  states.invalidate('all');
  await ask();
  t.same(reads(), [[other, changed], [changed], [other, changed]]);
  t.match(states.stats(), { invalidations: 1, invalidationsOfAll: 1 });
});

t.test('a read in flight during a change is neither cached nor joined', async (t) => {
  const answers = holdAnswers();
  const { states } = makeStates({ maxStalenessMs: aMinuteMs, store: answers.store });
  const before = states.find(ada, session);
  await answers.arrived(1);
  states.invalidate([ada]);
  const after = states.find(ada, session);
  await answers.arrived(2);
  answers.give(stateOf('of before'));
  answers.give(stateOf('of now'));
  t.match(await before, { role: 'of before' });
  t.match(await after, { role: 'of now' });
  t.match(states.find(ada, session), { role: 'of now' });
});

t.test('an older read that ends last does not replace a newer one', async (t) => {
  const answers = holdAnswers();
  const { states } = makeStates({ maxStalenessMs: aMinuteMs, store: answers.store });
  const before = states.find(ada, session);
  await answers.arrived(1);
  states.invalidate([ada]);
  const after = states.find(ada, session);
  await answers.arrived(2);
  answers.giveLast(stateOf('of now'));
  await after;
  answers.give(stateOf('of before'));
  t.match(await before, { role: 'of before' });
  t.match(states.find(ada, session), { role: 'of now' });
});

t.test('an unknown user is read again after a second', async (t) => {
  const { states, clock, reads } = makeStates({ maxStalenessMs: aMinuteMs, answer: () => undefined });
  t.equal(await states.find(ada, session), undefined);
  clock.advance(999);
  t.equal(states.find(ada, session), undefined);
  clock.advance(1);
  t.type(states.find(ada, session), Promise);
  t.equal(reads().length, 1);
});

t.test('during an outage cached states are used until they are too old', async (t) => {
  const database = { answer: () => stateOf('known') };
  const { states, clock } = makeStates({
    maxStalenessMs: 10_000,
    answer: () => database.answer(),
  });
  await states.find(ada, session);
  database.answer = () => {
    throw new Error('away');
  };
  clock.advance(9_999);
  t.match(states.find(ada, session), { role: 'known' });
  clock.advance(1);
  await t.rejects(Promise.resolve(states.find(ada, session)), { message: 'away' });
  await t.rejects(Promise.resolve(states.find(ada, session)), { message: 'away' }, 'read again each time');
  database.answer = () => stateOf('known');
  t.match(await states.find(ada, session), { role: 'known' });
});

t.test('a state is read again after the clock was set back', async (t) => {
  const { states, clock } = makeStates({ maxStalenessMs: 10_000 });
  await states.find(ada, session);
  clock.set(clock.nowMs() - 1);
  t.type(states.find(ada, session), Promise);
});

t.test('the number of entries is limited', async (t) => {
  const { states } = makeStates({ maxStalenessMs: aMinuteMs, capacity: 100 });
  for (let turn = 0; turn < 5; turn++)
    await Promise.all(Array.from({ length: 100 }, () => states.find(randomUUID(), undefined)));
  const { entries } = states.stats();
  t.ok(entries > 0 && entries <= 100, `${entries} entries`);
});

t.test('lookups that wait for others to be read have the same deadline', async (t) => {
  const answers = holdAnswers();
  const states = new IdentityCache({
    ...{ store: answers.store, nowMs: Date.now, maxStalenessMs: aMinuteMs },
    timeoutMs: 1_000,
  });
  // Four reads of 500 users are in flight at most; the others wait.
  const lookups = Array.from({ length: 3_000 }, async () => states.find(randomUUID(), undefined));
  const outcomes = await Promise.allSettled(lookups);
  t.ok(outcomes.every(({ status }) => status === 'rejected'));
  const reads = answers.count();
  t.ok(reads <= 4, 'no lookup waited for a fifth read');
  const next = states.find(ada, session);
  await answers.arrived(reads + 1);
  answers.giveLast(stateOf('known'));
  t.match(await next, { role: 'known' });
});

/** A cache over a store that counts its queries or responds as the test defines. */
function makeStates(options: {
  readonly maxStalenessMs: number;
  readonly capacity?: number;
  readonly answer?: () => IdentityState | undefined;
  readonly store?: Pick<IdentityStateStore, 'findMany'>;
}) {
  const { maxStalenessMs, capacity, answer = () => stateOf(`read ${calls.length}`) } = options;
  const clock = fakeClock();
  const calls: (readonly IdentityKey[])[] = [];
  const counting: Pick<IdentityStateStore, 'findMany'> = {
    async findMany(keys) {
      calls.push(keys);
      return keys.map(answer);
    },
  };
  const states = new IdentityCache({
    store: options.store ?? counting,
    nowMs: clock.nowMs,
    maxStalenessMs,
    ...(capacity !== undefined && { capacity }),
  });
  return { states, clock, reads: () => calls.map((keys) => keys.map(({ userId }) => userId)) };
}

function stateOf(role: string): IdentityState {
  const session = { createdAt: new Date(0), notAfter: undefined };
  return {
    role,
    appMetadata: {},
    isAnonymous: false,
    bannedUntil: undefined,
    session,
    organization: undefined,
  };
}

/** A store that answers when the test wants it to. */
function holdAnswers() {
  const held: PromiseWithResolvers<readonly IdentityState[]>[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let readCount = 0;
  const store: Pick<IdentityStateStore, 'findMany'> = {
    findMany() {
      const answer = Promise.withResolvers<readonly IdentityState[]>();
      held.push(answer);
      readCount += 1;
      for (const { count, resolve } of waiting) if (readCount >= count) resolve();
      return answer.promise;
    },
  };
  return {
    store,
    count: () => readCount,
    /** Resolves when that many questions have arrived. */
    arrived(count: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ count, resolve });
      if (readCount >= count) resolve();
      return promise;
    },
    /** Answers the oldest question. */
    give: (state: IdentityState) => held.shift()?.resolve([state]),
    /** Answers the youngest question. */
    giveLast: (state: IdentityState) => held.pop()?.resolve([state]),
  };
}
