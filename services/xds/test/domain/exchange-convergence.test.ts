import t from 'tap';
import {
  type DeltaReply,
  dueDelta,
  newDeltaExchange,
  receiveDelta,
  sentDelta,
} from '../../src/domain/delta-exchange.ts';
import type { Snapshot } from '../../src/domain/snapshot.ts';
import { dueSotw, newSotwExchange, receiveSotw, sentSotw } from '../../src/domain/sotw-exchange.ts';
import {
  beginSubscription,
  changeSubscription,
  noSubscription,
  replaceSubscription,
  type Selection,
  type Subscription,
  select,
} from '../../src/domain/subscription.ts';
import { type SeededRandom, seededRandom } from '../support/seeded-random.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

// Clients that do at random what the protocol lets them do. Once they accept everything, they have what they want.

const names = ['a', 'b', 'c', 'd'];

/** Accepted by everybody. The first has nothing that was rejected before, which would not be sent again. */
const lastSnapshots = [testSnapshot({ a: 7, b: 7, c: 7, d: 7 }), testSnapshot({ a: 7, c: 8, e: 9 })];

function randomNames(random: SeededRandom): string[] {
  return [...names, '*'].filter(() => random.below(100) < 25);
}

function randomSnapshot(random: SeededRandom): Snapshot {
  const some = names.filter(() => random.below(100) < 60);
  return testSnapshot(Object.fromEntries(some.map((name) => [name, random.below(3)])));
}

/** What a subscription has of a snapshot, as `name → version`. */
function wanted(snapshot: Snapshot, subscription: Subscription): Record<string, string> {
  const { resources } = select(snapshot, subscription);
  return Object.fromEntries([...resources.values()].map(({ name, version }) => [name, version]));
}

function playDelta(random: SeededRandom): { has: Record<string, string>; wants: Record<string, string> } {
  let snapshot = randomSnapshot(random);
  let exchange = newDeltaExchange;
  let nonces = 0;
  let onTheWay: DeltaReply | undefined;
  const has = new Map(names.filter(() => random.below(100) < 30).map((name) => [name, '0']));
  const initialVersions = new Map(has);

  const serve = (): void => {
    const reply = dueDelta(exchange, snapshot);
    if (reply === undefined) return;
    nonces += 1;
    exchange = sentDelta(exchange, reply, String(nonces));
    onTheWay = reply;
  };
  const request = (more: {
    subscribe?: string[];
    unsubscribe?: string[];
    nonce?: string;
    rejects?: boolean;
  }): void => {
    const empty = { subscribe: [], unsubscribe: [], nonce: '', rejects: false, initialVersions };
    exchange = receiveDelta(exchange, { ...empty, ...more }).exchange;
    serve();
  };
  /** Drops what is not wanted any more, as a client does at once. */
  const forget = (subscription: Subscription): void => {
    if (subscription.wildcard) return;
    for (const name of has.keys()) if (!subscription.names.has(name)) has.delete(name);
  };
  const answer = (rejects: boolean): void => {
    const reply = onTheWay;
    if (reply === undefined) return;
    onTheWay = undefined;
    if (!rejects) {
      for (const { name, version } of reply.diff.changed) has.set(name, version);
      for (const name of reply.diff.removed) has.delete(name);
      forget(subscription);
    }
    request({ nonce: String(nonces), rejects });
  };

  const first = randomNames(random);
  let subscription = beginSubscription(first, []);
  forget(subscription);
  request({ subscribe: first });
  for (let step = 0; step < 30; step += 1) {
    const dice = random.below(100);
    if (dice < 30) {
      snapshot = randomSnapshot(random);
      serve();
    } else if (dice < 70) answer(random.below(100) < 40);
    else {
      const [subscribe, unsubscribe] = [randomNames(random), randomNames(random)];
      subscription = changeSubscription(subscription, subscribe, unsubscribe);
      forget(subscription);
      // What it subscribes to, it may have forgotten.
      for (const name of subscribe) if (random.below(100) < 50) has.delete(name);
      request({ subscribe, unsubscribe });
    }
  }
  for (const last of lastSnapshots) {
    snapshot = last;
    serve();
    for (let round = 0; round < 5; round += 1) answer(false);
  }
  return { has: Object.fromEntries(has), wants: wanted(snapshot, subscription) };
}

function playSotw(random: SeededRandom): { has: Record<string, string>; wants: Record<string, string> } {
  let snapshot = randomSnapshot(random);
  let exchange = newSotwExchange;
  let nonces = 0;
  let nonce = '';
  let onTheWay: Selection | undefined;
  let has: Record<string, string> = {};
  let list = randomNames(random);
  let subscription = replaceSubscription(noSubscription, list);

  const serve = (): void => {
    const selection = dueSotw(exchange, snapshot);
    if (selection === undefined) return;
    nonces += 1;
    exchange = sentSotw(exchange, selection, String(nonces));
    onTheWay = selection;
  };
  const request = (rejects: boolean): void => {
    exchange = receiveSotw(exchange, { names: list, nonce, rejects }).exchange;
    serve();
  };
  const answer = (rejects: boolean): void => {
    const selection = onTheWay;
    if (selection === undefined) return;
    onTheWay = undefined;
    nonce = String(nonces);
    if (!rejects) has = wanted(selection.snapshot, subscription);
    request(rejects);
  };

  request(false);
  for (let step = 0; step < 30; step += 1) {
    const dice = random.below(100);
    if (dice < 30) {
      snapshot = randomSnapshot(random);
      serve();
    } else if (dice < 70) answer(random.below(100) < 40);
    else {
      list = randomNames(random);
      subscription = replaceSubscription(subscription, list);
      has = Object.fromEntries(
        Object.entries(has).filter(([name]) => subscription.wildcard || subscription.names.has(name)),
      );
      request(false);
    }
  }
  for (const last of lastSnapshots) {
    snapshot = last;
    serve();
    for (let round = 0; round < 5; round += 1) answer(false);
  }
  return { has, wants: wanted(snapshot, subscription) };
}

for (const [protocol, play] of Object.entries({ delta: playDelta, sotw: playSotw })) {
  t.test(`${protocol}: whatever a client does, it has what it wants in the end`, async (t) => {
    let failures = 0;
    for (let seed = 1; seed <= 5_000 && failures < 3; seed += 1) {
      const { has, wants } = play(seededRandom(seed));
      const same =
        Object.keys(has).length === Object.keys(wants).length &&
        Object.entries(wants).every(([name, version]) => has[name] === version);
      if (same) continue;
      failures += 1;
      t.same(has, wants, `seed ${seed}`);
    }
    t.equal(failures, 0);
  });
}
