import t from 'tap';
import { changed, deleted, getLimits, makeCatalog, replaced, type TestCatalog } from '../support/catalogs.ts';
import { badSpec, makeObject, type TestObject } from '../support/manifests.ts';

const graceMs = 600_000;
const minuteMs = 60_000;

/** An object for the contested domain; its limit identifies the namespace. */
const wanting = (id: string, requestsPerUnit: number, more: TestObject = {}) =>
  makeObject(id, { rules: [{ key: 'k', requestsPerUnit }], ...more });

const victim = wanting('victim/a', 1, { createdMs: 1_000, uid: 'first' });
const other = wanting('other/a', 2, { createdMs: 2_000 });
/** The object of the owner, deleted and created again: now the youngest. */
const madeAnew = wanting('victim/a', 3, { createdMs: 3_000, uid: 'second' });

/** The domain has had its owner for a minute, and another namespace waits for it. */
function startContested(): TestCatalog {
  const catalog = makeCatalog({ graceMs });
  catalog.applyAt(0, replaced(victim, other));
  return catalog;
}

const accepted = (catalog: TestCatalog, id: string) => catalog.results.get(id)?.accepted;

t.test('domain is reserved for the grace period after the last object of its owner', async (t) => {
  const catalog = startContested();
  const { snapshot } = catalog.applyAt(minuteMs, deleted('victim/a'));
  t.strictSame(getLimits(snapshot), [], 'nothing of the other namespace is in force');
  t.match(accepted(catalog, 'other/a'), {
    status: 'False',
    reason: 'DomainConflict',
    message:
      /^domain 'shop' belonged to namespace 'victim', and is kept for it until 1970-01-01T00:11:00\.000Z; /,
  });
  t.equal(catalog.results.get('other/a')?.domainOwner, 'victim');
  t.equal(catalog.nextExpiryMs(), minuteMs + graceMs);
  t.strictSame(catalog.applyAt(minuteMs + graceMs - 1).results, []);
  const free = catalog.applyAt(minuteMs + graceMs);
  t.strictSame(getLimits(free.snapshot), ['shop.k 2']);
  t.match(accepted(catalog, 'other/a'), { status: 'True' });
  t.equal(catalog.nextExpiryMs(), undefined);
});

t.test('returning owner gets its domain back with a younger object and keeps it', async (t) => {
  const catalog = startContested();
  catalog.applyAt(minuteMs, deleted('victim/a'));
  const back = catalog.applyAt(2 * minuteMs, changed(madeAnew));
  t.strictSame(getLimits(back.snapshot), ['shop.k 3']);
  t.match(
    accepted(catalog, 'other/a')?.message,
    /belongs to namespace 'victim', whose object victim\/a has had it before/,
  );
  t.equal(catalog.nextExpiryMs(), undefined);
  const later = catalog.applyAt(10 * graceMs, changed(wanting('other/b', 9, { createdMs: 500 })));
  t.strictSame(getLimits(later.snapshot), ['shop.k 3'], 'however old an object of another namespace is');
});

t.test('object deleted and created again between two reads keeps the domain', async (t) => {
  const catalog = startContested();
  const { snapshot } = catalog.applyAt(minuteMs, changed(madeAnew));
  t.strictSame(getLimits(snapshot), ['shop.k 3']);
});

t.test('domain without competitors is reserved, too', async (t) => {
  const catalog = makeCatalog({ graceMs });
  catalog.applyAt(0, replaced(victim));
  catalog.applyAt(minuteMs, deleted('victim/a'));
  const { snapshot } = catalog.applyAt(2 * minuteMs, changed(other));
  t.strictSame(getLimits(snapshot), []);
  t.strictSame(getLimits(catalog.applyAt(minuteMs + graceMs).snapshot), ['shop.k 2']);
});

t.test('objects of the first seconds are ordered by age, whatever their order of arrival', async (t) => {
  const catalog = makeCatalog({ graceMs });
  catalog.applyAt(0, replaced(other));
  t.strictSame(getLimits(catalog.applyAt(9_999, changed(victim)).snapshot), ['shop.k 1']);
  const settled = makeCatalog({ graceMs });
  settled.applyAt(0, replaced(other));
  t.strictSame(getLimits(settled.applyAt(10_000, changed(victim)).snapshot), ['shop.k 2']);
});

t.test('owners are restored from statuses after a restart', async (t) => {
  const stated = wanting('other/a', 2, { createdMs: 2_000, status: { domainOwner: 'victim' } });
  const back = makeCatalog({ graceMs });
  t.strictSame(getLimits(back.applyAt(minuteMs, replaced(stated, madeAnew)).snapshot), ['shop.k 3']);
  const gone = makeCatalog({ graceMs });
  t.strictSame(getLimits(gone.applyAt(minuteMs, replaced(stated)).snapshot), []);
  t.match(accepted(gone, 'other/a'), { reason: 'DomainConflict', message: /kept for it until/ });
  t.strictSame(getLimits(gone.applyAt(minuteMs + graceMs).snapshot), ['shop.k 2'], 'counted from the start');
  const invalid = makeCatalog({ graceMs });
  const bad = makeObject('victim/a', { spec: badSpec });
  t.strictSame(
    getLimits(invalid.applyAt(0, replaced(stated, bad)).snapshot),
    [],
    'an invalid edit loses nothing',
  );
});

t.test('contradicting or later statuses are ignored', async (t) => {
  const stated = (id: string, domainOwner: unknown) =>
    wanting(id, 2, { createdMs: 2_000, status: { domainOwner } });
  const differing = makeCatalog({ graceMs });
  const objects = [stated('b/x', 'victim'), stated('c/x', 'another')];
  t.strictSame(getLimits(differing.applyAt(0, replaced(...objects)).snapshot), ['shop.k 2']);
  for (const wrong of [17, '', 'x'.repeat(64), null]) {
    const catalog = makeCatalog({ graceMs });
    t.strictSame(getLimits(catalog.applyAt(0, replaced(stated('b/x', wrong))).snapshot), ['shop.k 2']);
  }
  const later = makeCatalog({ graceMs });
  later.applyAt(0, replaced());
  t.strictSame(getLimits(later.applyAt(minuteMs, replaced(stated('b/x', 'victim'))).snapshot), ['shop.k 2']);
});

t.test('without a grace period the oldest object owns the domain at once', async (t) => {
  const catalog = makeCatalog();
  catalog.applyAt(0, replaced(victim, other));
  t.strictSame(getLimits(catalog.applyAt(minuteMs, deleted('victim/a')).snapshot), ['shop.k 2']);
  t.equal(catalog.nextExpiryMs(), undefined);
});
