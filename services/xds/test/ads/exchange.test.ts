import t from 'tap';
import {
  beginSubscription,
  changeSubscription,
  isEmptySubscription,
  isSameSelection,
  noSubscription,
  replaceSubscription,
  type Subscription,
  select,
} from '../../src/ads/exchange.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

/** A subscription in short: `*` for everything, then the names. */
function brief({ wildcard, names }: Subscription): string {
  return [...(wildcard ? ['*'] : []), ...names].join(' ');
}

const sotwCases: readonly { lists: readonly (readonly string[])[]; wanted: string; because: string }[] = [
  { lists: [[]], wanted: '*', because: 'rule 7: empty at first is everything' },
  { lists: [[], []], wanted: '*', because: 'rule 7: and stays so' },
  { lists: [[], ['a'], []], wanted: '', because: 'rule 7: after a name, empty is nothing' },
  { lists: [[], ['*'], []], wanted: '', because: 'rule 7: after "*" too' },
  { lists: [['*', 'a']], wanted: '* a', because: 'rule 7: "*" goes along with names' },
  { lists: [['*', 'a'], ['a']], wanted: 'a', because: 'rule 7: "*" left out is everything no more' },
  { lists: [['a'], ['b', 'b']], wanted: 'b', because: 'a list replaces the one before' },
  { lists: [['a'], [], ['*']], wanted: '*', because: 'everything can be asked for again' },
];

for (const { lists, wanted, because } of sotwCases) {
  t.test(`${because}: ${JSON.stringify(lists)}`, async (t) => {
    t.equal(brief(lists.reduce(replaceSubscription, noSubscription)), wanted);
  });
}

type Change = readonly [subscribe: readonly string[], unsubscribe: readonly string[]];

const deltaCases: readonly { changes: readonly Change[]; wanted: string; because: string }[] = [
  { changes: [[[], []]], wanted: '*', because: 'no name at first is everything' },
  { changes: [[[], ['a']]], wanted: '*', because: 'dropping a name at first does not make it less' },
  {
    changes: [
      [['a'], []],
      [['b'], ['a']],
    ],
    wanted: 'b',
    because: 'names are added and dropped',
  },
  {
    changes: [
      [[], []],
      [['a'], []],
    ],
    wanted: '* a',
    because: 'a name goes along with everything',
  },
  {
    changes: [
      [[], []],
      [['a'], []],
      [[], ['*']],
    ],
    wanted: 'a',
    because: 'dropping "*" leaves the names',
  },
  {
    changes: [
      [['a'], []],
      [[], ['a']],
      [[], []],
    ],
    wanted: '',
    because: 'empty later on changes nothing',
  },
  {
    changes: [
      [['a'], []],
      [['*'], []],
    ],
    wanted: '* a',
    because: '"*" can be added',
  },
];

for (const { changes, wanted, because } of deltaCases) {
  t.test(`delta: ${because}: ${JSON.stringify(changes)}`, async (t) => {
    const [[subscribe, unsubscribe] = [[], []], ...later] = changes;
    const after = later.reduce(
      (subscription, [added, dropped]) => changeSubscription(subscription, added, dropped),
      beginSubscription(subscribe, unsubscribe),
    );
    t.equal(brief(after), wanted);
    t.equal(isEmptySubscription(after), wanted === '');
  });
}

t.test('wildcard selects the map of the snapshot itself, names select existing resources', async (t) => {
  const snapshot = testSnapshot({ a: 1, b: 2 });
  t.equal(select(snapshot, beginSubscription(['*', 'a'], [])).resources, snapshot.resources);
  t.same([...select(snapshot, beginSubscription(['b', 'c'], [])).resources.keys()], ['b']);
});

for (const names of [[], ['a', 'b', 'c']]) {
  t.test(`selections of ${names.join(', ') || 'all'} are the same when names and versions are`, async (t) => {
    const of = (limits: Readonly<Record<string, number>>) =>
      select(testSnapshot(limits), replaceSubscription(noSubscription, names));
    const one = of({ a: 1, b: 2 });
    t.ok(isSameSelection(one, of({ b: 2, a: 1 })));
    t.notOk(isSameSelection(one, of({ a: 1, b: 3 })));
    t.notOk(isSameSelection(one, of({ a: 1, c: 2 })));
    t.notOk(isSameSelection(one, of({ a: 1 })));
  });
}

t.test('wildcard selection equals the selection of all names', async (t) => {
  const snapshot = testSnapshot({ a: 1, b: 2 });
  const all = select(snapshot, replaceSubscription(noSubscription, []));
  const named = (...names: readonly string[]) => select(snapshot, replaceSubscription(noSubscription, names));
  t.ok(isSameSelection(all, named('a', 'b')));
  t.notOk(isSameSelection(all, named('a')));
});
