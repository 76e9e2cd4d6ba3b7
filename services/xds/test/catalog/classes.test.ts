import t from 'tap';
import { type CommonSnapshot, SnapshotStore } from '../../src/catalog/snapshot.ts';
import { changed, deleted, getLimits, makeCatalog, replaced } from '../support/catalogs.ts';
import { makeDescriptor, makeObject, type TestObject, type TestRule } from '../support/manifests.ts';

interface ObjectOfClass extends Pick<TestObject, 'domain' | 'createdMs' | 'generation'> {
  readonly limiterClass: string | undefined;
  readonly rules?: readonly TestRule[];
}

/** An object for limiters of a class, or for all. */
function makeObjectOfClass(id: string, { limiterClass, domain = 'shop', rules, ...more }: ObjectOfClass) {
  const descriptors = (rules ?? [{ key: 'k' }]).map(makeDescriptor);
  const spec = { domain, descriptors, ...(limiterClass !== undefined && { limiterClassName: limiterClass }) };
  return makeObject(id, { spec, ...more });
}

const rule = (key: string, requestsPerUnit: number): readonly TestRule[] => [{ key, requestsPerUnit }];

/** The limits that limiters of a class get. */
function limitsOf(snapshot: CommonSnapshot, limiterClass?: string): readonly string[] {
  const store = new SnapshotStore(() => 0);
  store.set(snapshot);
  const ofClass = store.currentOf(limiterClass);
  return ofClass === undefined ? [] : getLimits(ofClass);
}

t.test('limiters of a class get its objects and those without a class, others only the latter', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(
      makeObjectOfClass('ns/all', { limiterClass: undefined, domain: 'all' }),
      makeObjectOfClass('ns/dev', { limiterClass: 'dev', domain: 'dev' }),
      makeObjectOfClass('ns/edge', { limiterClass: 'edge', domain: 'edge' }),
    ),
  );
  t.strictSame(limitsOf(snapshot), ['all.k 10']);
  t.strictSame(limitsOf(snapshot, 'dev'), ['all.k 10', 'dev.k 10']);
  t.strictSame(limitsOf(snapshot, 'other'), ['all.k 10']);
  t.equal(catalog.rules, 3);
  t.match(catalog.results.get('ns/dev'), { limiterClass: 'dev', rules: 1, accepted: { status: 'True' } });
});

t.test('objects of a domain are merged for a class, and those without a class come first', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(
      makeObjectOfClass('ns/dev', { limiterClass: 'dev', rules: [...rule('k', 1), ...rule('own', 2)] }),
      makeObjectOfClass('ns/younger', { limiterClass: undefined, rules: rule('k', 3), createdMs: 9 }),
    ),
  );
  t.strictSame(limitsOf(snapshot), ['shop.k 3']);
  t.strictSame(limitsOf(snapshot, 'dev'), ['shop.k 3', 'shop.own 2'], 'a class lifts no limit');
  t.match(catalog.results.get('ns/dev')?.accepted, { reason: 'DuplicateKey', message: /'k' is already in/ });
  t.match(catalog.results.get('ns/younger')?.accepted, { status: 'True' });
  t.equal(catalog.rules, 2);

  const without = catalog.apply(deleted('ns/younger'));
  t.strictSame(limitsOf(without.snapshot, 'dev'), ['shop.k 1', 'shop.own 2']);
  t.strictSame(limitsOf(without.snapshot), []);
  const none = catalog.apply(deleted('ns/dev'));
  t.strictSame(limitsOf(none.snapshot, 'dev'), []);
  t.equal(none.snapshot.classes.size, 0);
  t.equal(catalog.rules, 0);
});

t.test('each class has its own owner of a domain', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(
      makeObjectOfClass('one/dev', { limiterClass: 'dev', rules: rule('k', 1) }),
      makeObjectOfClass('two/edge', { limiterClass: 'edge', rules: rule('k', 2) }),
      makeObjectOfClass('three/edge', { limiterClass: 'edge', rules: rule('k', 3), createdMs: 9 }),
    ),
  );
  t.strictSame(limitsOf(snapshot, 'dev'), ['shop.k 1']);
  t.strictSame(limitsOf(snapshot, 'edge'), ['shop.k 2']);
  t.match(catalog.results.get('three/edge'), { domainOwner: 'two', accepted: { reason: 'DomainConflict' } });
});

t.test('domain of objects without a class is not for other namespaces in any class', async (t) => {
  const catalog = makeCatalog({ graceMs: 60_000 });
  const older = makeObjectOfClass('attacker/dev', { limiterClass: 'dev', rules: rule('k', 9_000) });
  catalog.applyAt(0, replaced(older));
  t.match(catalog.results.get('attacker/dev')?.accepted, { status: 'True' });
  const { snapshot } = catalog.applyAt(
    30_000,
    changed(makeObjectOfClass('owner/all', { limiterClass: undefined, rules: rule('k', 1), createdMs: 9 })),
  );
  t.strictSame(limitsOf(snapshot, 'dev'), ['shop.k 1']);
  t.match(catalog.results.get('attacker/dev')?.accepted, {
    reason: 'DomainConflict',
    message: /belongs to namespace 'owner'/,
  });
  const reserved = catalog.applyAt(31_000, deleted('owner/all'));
  t.strictSame(limitsOf(reserved.snapshot, 'dev'), []);
  const free = catalog.applyAt(91_000);
  t.strictSame(limitsOf(free.snapshot, 'dev'), ['shop.k 9000']);
});

t.test('object that changes its class is served to limiters of the new one only', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObjectOfClass('ns/a', { limiterClass: 'dev' })));
  const { snapshot } = catalog.apply(
    changed(makeObjectOfClass('ns/a', { limiterClass: 'edge', generation: 2 })),
  );
  t.strictSame(limitsOf(snapshot, 'dev'), []);
  t.strictSame(limitsOf(snapshot, 'edge'), ['shop.k 10']);
});

t.test('class that is no name is a problem of its object', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObjectOfClass('ns/a', { limiterClass: 'Dev/1' })));
  t.match(catalog.results.get('ns/a')?.accepted, {
    reason: 'Invalid',
    message: /spec\.limiterClassName: .*lower-case name such as edge-eu/,
  });
});

t.test('edit of one class changes nothing for limiters of others', async (t) => {
  const catalog = makeCatalog();
  const store = new SnapshotStore(() => 0);
  let changes = 0;
  store.onChange(() => (changes += 1));
  const edit = (generation: number, requestsPerUnit: number) =>
    makeObjectOfClass('ns/dev', { limiterClass: 'dev', generation, rules: rule('dev', requestsPerUnit) });
  store.set(
    catalog.apply(
      replaced(
        makeObjectOfClass('ns/all', { limiterClass: undefined, domain: 'all' }),
        makeObjectOfClass('ns/edge', { limiterClass: 'edge', domain: 'edge' }),
        edit(1, 1),
      ),
    ).snapshot,
  );
  const [common, dev, edge] = [undefined, 'dev', 'edge'].map((name) => store.currentOf(name));
  store.set(catalog.apply(changed(edit(2, 2))).snapshot);
  t.equal(changes, 2);
  t.equal(store.currentOf(undefined)?.version, common?.version);
  t.equal(
    store.currentOf(undefined)?.resources,
    common?.resources,
    'the map is the key of encoded responses',
  );
  t.equal(store.currentOf('edge'), edge);
  t.not(store.currentOf('dev')?.version, dev?.version);
});
