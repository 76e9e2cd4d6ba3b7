import t from 'tap';
import { type DeltaReply, dueDelta, newDeltaExchange, receiveDelta, sentDelta } from '../../src/ads/delta.ts';
import {
  beginSubscription,
  changeSubscription,
  dueSotw,
  newSotwExchange,
  noSubscription,
  receiveSotw,
  replaceSubscription,
  type Selection,
  type Subscription,
  select,
  sentSotw,
} from '../../src/ads/exchange.ts';
import type { Snapshot } from '../../src/catalog/snapshot.ts';
import { type SeededRandom, seededRandom } from '../support/seeded-random.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

// Clients that act randomly within the protocol. When nothing is in flight and nothing is rejected,
// a client has the resources of its subscription.

/** The actual and the expected resources of a client, as `name → version`. */
interface Moment {
  readonly has: Readonly<Record<string, string>>;
  readonly wants: Readonly<Record<string, string>>;
}

const names = ['a', 'b', 'c', 'd'];

function randomNames(random: SeededRandom): string[] {
  return [...names, '*'].filter(() => random.below(100) < 25);
}

function randomSnapshot(random: SeededRandom): Snapshot {
  const some = names.filter(() => random.below(100) < 60);
  return testSnapshot(Object.fromEntries(some.map((name) => [name, random.below(3)])));
}

function getVersions({ resources }: Selection): Record<string, string> {
  return Object.fromEntries([...resources.values()].map(({ name, version }) => [name, version]));
}

function playDelta(random: SeededRandom): Moment[] {
  let snapshot = randomSnapshot(random);
  let exchange = newDeltaExchange;
  let nonces = 0;
  const moments: Moment[] = [];
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
  /** Drops resources outside the subscription, as a client does at once. */
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
      // It may have dropped resources that it subscribes to again.
      for (const name of subscribe) if (random.below(100) < 50) has.delete(name);
      request({ subscribe, unsubscribe });
    }
    if (onTheWay === undefined && exchange.rejected.size === 0) {
      moments.push({ has: Object.fromEntries(has), wants: getVersions(select(snapshot, subscription)) });
    }
  }
  return moments;
}

function playSotw(random: SeededRandom): Moment[] {
  let snapshot = randomSnapshot(random);
  let exchange = newSotwExchange;
  let nonces = 0;
  const moments: Moment[] = [];
  let nonce = '';
  let rejected = false;
  let onTheWay: Selection | undefined;
  let has: Record<string, string> = {};
  // Not empty: the server ignores stale requests, so that it may not know yet that an empty list
  // means no resources.
  let list = ['*', ...randomNames(random)];
  let subscription = replaceSubscription(noSubscription, list);

  const serve = (): void => {
    const selection = dueSotw(exchange, snapshot);
    if (selection === undefined) return;
    nonces += 1;
    exchange = sentSotw(exchange, selection, String(nonces));
    onTheWay = selection;
    rejected = false;
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
    rejected = rejects;
    // It ignores resources that it has unsubscribed from meanwhile.
    if (!rejects) has = getVersions(select({ ...selection.snapshot, ...selection }, subscription));
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
    if (onTheWay === undefined && !rejected)
      moments.push({ has, wants: getVersions(select(snapshot, subscription)) });
  }
  return moments;
}

for (const [protocol, play] of Object.entries({ delta: playDelta, sotw: playSotw })) {
  t.test(`${protocol}: a client always converges to its subscription`, async (t) => {
    let moments = 0;
    for (let seed = 1; seed <= 2_000; seed += 1) {
      for (const { has, wants } of play(seededRandom(seed))) {
        moments += 1;
        if (sameEntries(has, wants)) continue;
        t.same(has, wants, `seed ${seed}`);
        return;
      }
    }
    t.ok(moments > 10_000, 'it was looked at often enough');
  });
}

function sameEntries(one: Moment['has'], other: Moment['has']): boolean {
  const entries = Object.entries(one);
  return (
    entries.length === Object.keys(other).length &&
    entries.every(([name, version]) => other[name] === version)
  );
}
