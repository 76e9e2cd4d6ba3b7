import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import { Catalog } from '../../src/catalog/catalog.ts';
import type { ConfigObject, SourceEvent } from '../../src/catalog/source.ts';
import { formatProblem } from '../../src/catalog/validation.ts';
import { changed, deleted, replaced } from '../support/catalogs.ts';
import { badSpec, makeObject } from '../support/manifests.ts';

const graceMs = 600_000;

/** A catalog after some events, and what it says of an object. */
function makeCatalog(...events: readonly SourceEvent[]) {
  const catalog = new Catalog({ graceMs });
  runSteps(catalog.apply(events, 0));
  return {
    apply: (nowMs: number, ...more: readonly SourceEvent[]) => runSteps(catalog.apply(more, nowMs)),
    preview(object: ConfigObject, nowMs = 60_000, isDeleted?: (id: string) => boolean) {
      const { problems, warnings } = runSteps(catalog.preview(object, nowMs, isDeleted));
      return { problems: problems.map(formatProblem), warnings };
    },
    catalog,
  };
}

const first = makeObject('shop/a', { rules: [{ key: 'k' }], createdMs: 1_000 });

const edgeObject = (namespace: string) => {
  const spec = {
    domain: 'shop',
    limiterClassName: 'edge',
    descriptors: [{ key: 'j', rateLimit: { unit: 'Minute', requestsPerUnit: 1 } }],
  };
  return makeObject(`${namespace}/edge`, { spec, createdMs: 2_000 });
};

t.test('new object without conflicts has no problems', async (t) => {
  const { preview } = makeCatalog(replaced(first));
  t.strictSame(preview(makeObject('shop/b', { rules: [{ key: 'j' }], createdMs: 2_000 })), {
    problems: [],
    warnings: [],
  });
});

t.test('problems of the object itself have the path of the field', async (t) => {
  const { preview } = makeCatalog(replaced(first));
  t.match(preview(makeObject('shop/b', { spec: badSpec })).problems, [
    /^spec\.descriptors\[0\]\.rateLimit\.unit: must be one of Second, .*, not 'Fortnight'$/,
  ]);
});

t.test('domain of another namespace is a problem of spec.domain', async (t) => {
  const { preview } = makeCatalog(replaced(first));
  t.strictSame(preview(makeObject('other/b', { createdMs: 2_000 })).problems, [
    "spec.domain: 'shop' belongs to namespace 'shop', whose object shop/a is older: choose another domain",
  ]);
});

t.test('domain kept for another namespace is a problem until the grace period ends', async (t) => {
  const { apply, preview } = makeCatalog(replaced(first));
  apply(60_000, deleted('shop/a'));
  t.strictSame(preview(makeObject('other/b', { createdMs: 2_000 })).problems, [
    "spec.domain: 'shop' belonged to namespace 'shop', and is kept for it until 1970-01-01T00:11:00.000Z: choose another domain, or wait",
  ]);
  t.strictSame(preview(makeObject('shop/b', { createdMs: 2_000 })).problems, []);
  t.strictSame(preview(makeObject('other/b', { createdMs: 2_000 }), 60_000 + graceMs).problems, []);
});

t.test('top-level rule of an older object is a problem of the younger one', async (t) => {
  const { preview } = makeCatalog(replaced(first));
  const rules = [{ key: 'j' }, { key: 'k' }];
  t.strictSame(preview(makeObject('shop/b', { rules, createdMs: 2_000 })).problems, [
    "spec.descriptors[1]: 'k' is already in shop/a, which is older",
  ]);
});

t.test('change of an older object warns of rules that a younger one loses', async (t) => {
  const younger = makeObject('shop/b', { rules: [{ key: 'j' }], createdMs: 2_000 });
  const { preview } = makeCatalog(replaced(first, younger));
  const next = makeObject('shop/a', { rules: [{ key: 'j' }], createdMs: 1_000, generation: 2 });
  const { problems, warnings } = preview(next);
  t.strictSame(problems, []);
  t.match(warnings, [
    /^shop\/b loses rules: top-level rules that another object .*'j' is already in shop\/a/s,
  ]);
});

t.test('version of an object is compared with the others, not with its former one', async (t) => {
  const { preview } = makeCatalog(replaced(first));
  const next = makeObject('shop/a', { rules: [{ key: 'k', requestsPerUnit: 2 }], generation: 2 });
  t.strictSame(preview(next).problems, []);
});

t.test('preview changes nothing', async (t) => {
  const { apply, preview, catalog } = makeCatalog(replaced(first));
  preview(makeObject('other/b', { createdMs: 0 }));
  preview(makeObject('shop/c', { domain: 'free', createdMs: 0 }));
  t.strictSame([...catalog.results.keys()], ['shop/a']);
  const { results } = apply(60_000, changed(makeObject('other/d', { domain: 'free', createdMs: 9_000 })));
  t.match(results, [{ id: 'other/d', accepted: { status: 'True' } }]);
});

t.test('object of a limiter class is evaluated with the objects of no class', async (t) => {
  const { preview } = makeCatalog(replaced(first));
  t.strictSame(preview(edgeObject('shop')).problems, []);
  t.match(preview(edgeObject('other')).problems, [/^spec\.domain: 'shop' belongs to namespace 'shop'/]);
});

t.test('object whose deletion waits does not deny its successor, and still owns the domain', async (t) => {
  const { preview } = makeCatalog(replaced(first));
  const isDeleted = (id: string) => id === 'shop/a';
  const rename = makeObject('shop/b', { rules: [{ key: 'k' }], createdMs: 2_000 });
  t.strictSame(preview(rename, 60_000, isDeleted), { problems: [], warnings: [] });
  t.match(preview(makeObject('other/b', { createdMs: 2_000 }), 60_000, isDeleted).problems, [
    /^spec\.domain: 'shop' belonged to namespace 'shop', and is kept for it until /,
  ]);
  t.match(preview(edgeObject('other'), 60_000, isDeleted).problems, [
    /^spec\.domain: 'shop' belonged to namespace 'shop', and is kept for it until /,
  ]);
  t.strictSame(preview(edgeObject('shop'), 60_000, isDeleted).problems, []);
});
