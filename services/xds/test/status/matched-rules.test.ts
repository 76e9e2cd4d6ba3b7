import { runSteps } from '@tollgate/kit/time';
import { encodeBits } from '@tollgate/rules/matched';
import t from 'tap';
import { Catalog } from '../../src/catalog/catalog.ts';
import type { CommonSnapshot } from '../../src/catalog/snapshot.ts';
import type { ConfigObject } from '../../src/catalog/source.ts';
import { MatchedRules } from '../../src/status/matched-rules.ts';
import { toStatusManifest } from '../../src/status/status-manifest.ts';
import { replaced } from '../support/catalogs.ts';
import { makeObject } from '../support/manifests.ts';

const hourMs = 3_600_000;
const rules = ['user', 'usr', 'ip'].map((key) => ({ key }));

/** Bits of rules, as a limiter sends them. */
const bits = (...set: readonly boolean[]): string => encodeBits(set) ?? '';

function startObserving(...objects: readonly ConfigObject[]) {
  const catalog = new Catalog();
  let nowMs = 0;
  const matched = new MatchedRules({
    nowMs: () => nowMs,
    documentOf: (id) => catalog.documentOf(id),
    unmatchedAfterMs: hourMs,
  });
  const apply = (...all: readonly ConfigObject[]): CommonSnapshot =>
    runSteps(catalog.apply([replaced(...all)], nowMs)).snapshot;
  const evaluate = (areAllReporting = true) => {
    runSteps(matched.evaluate(catalog.results, areAllReporting));
    return (id: string) => {
      const result = catalog.results.get(id);
      return result && matched.conditionOf(result);
    };
  };
  return {
    matched,
    snapshot: apply(...objects),
    apply,
    evaluate,
    wait: (ms: number) => (nowMs += ms),
  };
}

t.test('rules that never match are named after an hour, and all matched is final', async (t) => {
  const { matched, snapshot, evaluate, wait } = startObserving(makeObject('ns/a', { rules }));
  matched.add(snapshot, { shop: bits(true) });
  t.equal(evaluate()('ns/a'), undefined, 'not known yet');
  wait(hourMs);
  t.strictSame(evaluate()('ns/a'), {
    status: 'False',
    reason: 'NeverMatched',
    message: 'never matched since 1970-01-01T00:00:00Z:\nusr\nip',
  });
  const before = evaluate()('ns/a');
  matched.add(snapshot, { shop: bits(false, false, true) });
  t.equal(evaluate()('ns/a'), before, 'the text follows an hour later');
  wait(hourMs);
  t.match(evaluate()('ns/a'), { message: /:\nusr$/ });
  matched.add(snapshot, { shop: bits(false, true) });
  t.match(evaluate()('ns/a'), { status: 'True', reason: 'AllMatched' });
});

t.test('nothing is named while a limiter does not report', async (t) => {
  const { evaluate, wait } = startObserving(makeObject('ns/a', { rules }));
  evaluate();
  wait(hourMs);
  t.equal(evaluate(false)('ns/a'), undefined);
  t.match(evaluate()('ns/a'), { status: 'False' });
});

t.test('edit of another rule keeps what has matched, and begins another hour', async (t) => {
  const { matched, snapshot, apply, evaluate, wait } = startObserving(makeObject('ns/a', { rules }));
  matched.add(snapshot, { shop: bits(true, false, true) });
  evaluate();
  wait(hourMs);
  t.match(evaluate()('ns/a'), { status: 'False', message: /usr$/ });
  const edited = rules.map(({ key }) => ({ key: key === 'usr' ? 'role' : key }));
  const next = apply(makeObject('ns/a', { rules: edited, generation: 2 }));
  t.equal(evaluate()('ns/a'), undefined);
  matched.add(next, { shop: bits(false, true) });
  t.match(evaluate()('ns/a'), { status: 'True' });
});

t.test('object has the rules of its own in a domain of several', async (t) => {
  const { matched, snapshot, evaluate, wait } = startObserving(
    makeObject('ns/a', { rules: [{ key: 'user' }] }),
    makeObject('ns/b', { rules: [{ key: 'usr' }] }),
  );
  matched.add(snapshot, { shop: bits(true) });
  evaluate();
  wait(hourMs);
  const conditionOf = evaluate();
  t.match(conditionOf('ns/a'), { status: 'True' });
  t.match(conditionOf('ns/b'), { status: 'False' });
});

t.test('other replicas learn what has matched, all domains in turns', async (t) => {
  const objects = Array.from({ length: 150 }, (_, i) =>
    makeObject(`ns/${i}`, { domain: `d${i}`, rules: [{ key: 'user' }, { key: 'ip' }] }),
  );
  const [one, other] = [startObserving(...objects), startObserving(...objects)];
  for (let i = 0; i < 150; i += 1) one.matched.add(one.snapshot, { [`d${i}`]: bits(true, true) });
  const first = one.matched.report(one.snapshot) ?? {};
  t.equal(Object.keys(first).length, 100);
  one.wait(30_000);
  for (const reported of [first, one.matched.report(one.snapshot) ?? {}])
    other.matched.addReported(reported, other.snapshot);
  const conditionOf = other.evaluate();
  t.ok(objects.every(({ id }) => conditionOf(id)?.status === 'True'));
});

t.test('reports are bounded in bytes, and large domains come in turns, too', async (t) => {
  const many = Array.from({ length: 4_000 }, (_, i) => ({ key: `k${i}` }));
  const { matched, snapshot, wait } = startObserving(makeObject('ns/a', { rules: many }));
  matched.add(snapshot, { shop: bits(...many.map(() => true)) });
  // One resource under many names: to make as many takes seconds.
  const [resource] = snapshot.resources.values();
  const resources = new Map(Array.from({ length: 140 }, (_, i) => [`d${i}`, resource] as const));
  const large = { ...snapshot, resources } as CommonSnapshot;
  const seen = new Set<string>();
  for (let turn = 0; turn < 3; turn += 1) {
    const reported = matched.report(large) ?? {};
    t.ok(JSON.stringify(reported).length < 64_000);
    t.strictSame(Object.keys(matched.report(large) ?? {}), Object.keys(reported), 'the same within a turn');
    for (const key of Object.keys(reported)) seen.add(key);
    wait(30_000);
  }
  t.equal(seen.size, 140);
});

t.test('report that does not fit is ignored', async (t) => {
  const { matched, snapshot, evaluate } = startObserving(makeObject('ns/a', { rules }));
  for (const report of [undefined, 'x', null, { other: 'AQ==' }, { shop: 7 }, { shop: '' }])
    matched.add(snapshot, report);
  matched.addReported({ '/shop': ['00000000', bits(true, true, true)], x: ['', ''] }, snapshot);
  t.equal(evaluate()('ns/a'), undefined);
});

t.test('condition of the same generation stays over a restart until more is known', async (t) => {
  const status = {
    id: 'ns/a',
    uid: 'u',
    observedGeneration: 2,
    rules: 1,
    version: 'v',
    accepted: { status: 'True', reason: 'Accepted', message: '' },
    programmed: { status: 'True', reason: 'Acknowledged', message: '' },
  } as const;
  const current = (known: string, generation = 2) => ({
    conditions: [
      { type: 'Matched', status: known, reason: 'Known', message: 'm', observedGeneration: generation },
    ],
  });
  const never = { status: 'False', reason: 'NeverMatched', message: 'usr' } as const;
  const matchedOf = (...args: Parameters<typeof toStatusManifest>) =>
    toStatusManifest(...args).conditions.find(({ type }) => type === 'Matched');
  t.match(matchedOf(status, undefined, 0), { status: 'Unknown', reason: 'Observing' });
  t.match(matchedOf(status, current('False'), 0), { status: 'False', reason: 'Known' });
  t.match(matchedOf({ ...status, matched: never }, current('False'), 0), { reason: 'NeverMatched' });
  t.match(matchedOf({ ...status, matched: never }, current('True'), 0), { status: 'True' });
  t.match(matchedOf({ ...status, matched: never }, current('True', 1), 0), { status: 'False' });
  t.match(matchedOf(status, current('False', 1), 0), { status: 'Unknown' });
});
