import { runSteps } from '@tollgate/kit/time';
import t from 'tap';
import { Catalog, type CatalogEvent } from '../../src/catalog/catalog.ts';
import { formatProblem } from '../../src/catalog/validation.ts';
import { changed, deleted, getLimits, replaced } from '../support/catalogs.ts';
import { makeObject, type TestObject } from '../support/manifests.ts';

const graceMs = 600_000;

/** A catalog in which domains belong to namespaces, except to some. */
function makeCatalog(...anyDomainNamespaces: readonly string[]) {
  const catalog = new Catalog({ graceMs, anyDomainNamespaces });
  return {
    apply: (nowMs: number, ...events: readonly CatalogEvent[]) => runSteps(catalog.apply(events, nowMs)),
    accepted: (id: string) => catalog.results.get(id)?.accepted,
    preview: (object: ReturnType<typeof makeObject>) =>
      runSteps(catalog.preview(object, 60_000)).problems.map(formatProblem),
    catalog,
  };
}

const limiting = (id: string, requestsPerUnit: number, more: TestObject = {}) =>
  makeObject(id, { domain: 'shop/web', rules: [{ key: 'k', requestsPerUnit }], ...more });

/** As before an upgrade: the xDS server has written that its rules are in force. */
const inForce = { status: { rules: 1 } };

t.test('domain is the name of the namespace, or begins with it and a slash', async (t) => {
  const { apply, accepted, preview } = makeCatalog();
  const domains = ['shop', 'shop/web', 'shop/web/v2', 'shopping', 'web', 'other/shop', 'Shop'];
  const objects = domains.map((domain, index) => makeObject(`shop/object-${index}`, { domain }));
  apply(0, replaced(...objects));
  const reasons = objects.map(({ id }) => accepted(id)?.reason);
  const [yes, no] = ['Accepted', 'DomainNotAllowed'];
  t.strictSame(reasons, [yes, yes, yes, no, no, no, no]);
  t.equal(
    accepted('shop/object-4')?.message,
    "domain 'web' does not belong to namespace 'shop'; nothing of this object is in force: use 'shop' or 'shop/<name>'",
  );
  t.strictSame(preview(makeObject('shop/new', { domain: 'web' })), [
    "spec.domain: 'web' does not belong to namespace 'shop': use 'shop' or 'shop/<name>'",
  ]);
  t.strictSame(preview(makeObject('shop/new', { domain: 'shop/new' })), []);
});

t.test('listed namespaces, or all by *, may claim any domain', async (t) => {
  for (const names of [['platform'], ['*']]) {
    const { apply, accepted } = makeCatalog(...names);
    apply(0, replaced(makeObject('platform/a', { domain: 'web' })));
    t.match(accepted('platform/a'), { status: 'True', message: /^1 limit for domain 'web'$/ });
  }
});

t.test('domains of access policies are reserved in every namespace', async (t) => {
  for (const names of [[], ['*'], ['shop']]) {
    const { apply, accepted, preview } = makeCatalog(...names);
    const object = makeObject('shop/a', { domain: 'policy/shop/orders', ...inForce });
    const own = makeObject('policy/b', { domain: 'policy/shop/stock' });
    const { snapshot } = apply(0, replaced(object, own));
    t.strictSame(getLimits(snapshot), []);
    for (const id of ['shop/a', 'policy/b'])
      t.match(accepted(id), {
        status: 'False',
        reason: 'DomainNotAllowed',
        message: /'policy\/shop\/\w+' is reserved for the limits of access policies; .*: use a domain that/,
      });
    t.strictSame(preview(makeObject('shop/new', { domain: 'policy/shop/orders' })), [
      "spec.domain: 'policy/shop/orders' is reserved for the limits of access policies: use a domain that does not begin with 'policy/'",
    ]);
  }
});

t.test('object that bypassed admission takes no domain, and reserves none', async (t) => {
  const { apply, accepted } = makeCatalog();
  const { snapshot } = apply(0, replaced(limiting('evil/a', 1, { createdMs: 1 })));
  t.strictSame(getLimits(snapshot), []);
  t.match(accepted('evil/a'), { status: 'False', reason: 'DomainNotAllowed' });
  const next = apply(60_000, changed(limiting('shop/a', 2, { createdMs: 2 })));
  t.strictSame(getLimits(next.snapshot), ['shop/web.k 2']);
  apply(120_000, changed(limiting('evil/a', 3, { createdMs: 1, generation: 2 })));
  t.match(accepted('evil/a'), { status: 'False', reason: 'DomainNotAllowed' });
  t.match(accepted('shop/a'), { status: 'True' });
});

t.test('object in force before the upgrade stays in force, edits included', async (t) => {
  const { apply, accepted, preview } = makeCatalog();
  const before = apply(0, replaced(limiting('old/a', 1, inForce)));
  t.strictSame(getLimits(before.snapshot), ['shop/web.k 1']);
  t.match(accepted('old/a'), {
    status: 'True',
    message:
      /\ndomain 'shop\/web' does not belong to namespace 'old', and stays in force because it was before: list the namespace in XDS_ANY_DOMAIN_NAMESPACES$/,
  });
  const edited = limiting('old/a', 2, { generation: 2, ...inForce });
  t.strictSame(preview(edited), []);
  t.strictSame(getLimits(apply(60_000, changed(edited)).snapshot), ['shop/web.k 2']);
});

t.test('object in force before the upgrade is not tolerated when it is created again', async (t) => {
  const { apply, accepted } = makeCatalog();
  apply(0, replaced(limiting('old/a', 1, inForce)));
  apply(60_000, deleted('old/a'));
  apply(61_000, changed(limiting('old/a', 1, { uid: 'second' })));
  t.match(accepted('old/a'), { status: 'False', reason: 'DomainNotAllowed' });
});

t.test('tolerated object whose deletion is held back may be created again', async (t) => {
  const { apply, accepted, preview, catalog } = makeCatalog();
  apply(0, replaced(limiting('old/a', 1, inForce)));
  const held = catalog.find('old/a');
  apply(1, ...(held ? [{ type: 'restored' as const, object: { ...held, heldBack: 'why' } }] : []));
  t.match(accepted('old/a'), { reason: 'Held' });
  const again = limiting('old/a', 1, { uid: 'second' });
  t.strictSame(preview(again), []);
  apply(2, changed(again));
  t.match(accepted('old/a'), { status: 'True', reason: 'Accepted' });
});

t.test('tolerated object in conflict stays tolerated after a restart', async (t) => {
  const accepted = (reason: string) => ({ conditions: [{ type: 'Accepted', reason }] });
  for (const reason of ['DomainConflict', 'DuplicateKey']) {
    const { preview, catalog, apply } = makeCatalog();
    const status = { rules: 0, ...accepted(reason) };
    apply(0, replaced(limiting('old/a', 1, { status })));
    t.equal(catalog.find('old/a')?.claim, 'tolerated', reason);
    t.strictSame(preview(limiting('old/a', 2, { generation: 2, status })), []);
  }
  const { catalog, apply } = makeCatalog();
  const others = [
    accepted('DomainNotAllowed'),
    accepted('Invalid'),
    { conditions: [null, 7] },
    { conditions: 7 },
  ];
  apply(0, replaced(...others.map((status, i) => limiting(`old/${i}`, 1, { status }))));
  t.ok(others.every((_, i) => catalog.find(`old/${i}`)?.claim === 'refused'));
});

t.test(
  'object in conflict before the upgrade takes the domain when its owner gives it up, as before',
  async (t) => {
    const { apply, accepted } = makeCatalog();
    const conflict = { conditions: [{ type: 'Accepted', reason: 'DomainConflict' }], domainOwner: 'old' };
    const waiting = limiting('other/a', 2, { createdMs: 2, status: { rules: 0, ...conflict } });
    const before = apply(0, replaced(limiting('old/a', 1, { createdMs: 1, ...inForce }), waiting));
    t.strictSame(getLimits(before.snapshot), ['shop/web.k 1']);
    apply(60_000, deleted('old/a'));
    const after = apply(60_000 + graceMs);
    t.strictSame(getLimits(after.snapshot), ['shop/web.k 2']);
    t.match(accepted('other/a'), { status: 'True', message: /stays in force because it was before/ });
    const taken = apply(60_001 + graceMs, changed(limiting('shop/a', 3, { createdMs: 3 })));
    t.strictSame(getLimits(taken.snapshot), ['shop/web.k 3']);
  },
);

t.test('namespace of that name takes the domain from a tolerated object at once', async (t) => {
  const { apply, accepted } = makeCatalog();
  apply(0, replaced(limiting('old/a', 1, { createdMs: 1, ...inForce })));
  const taken = apply(60_000, changed(limiting('shop/a', 2, { createdMs: 2 })));
  t.strictSame(getLimits(taken.snapshot), ['shop/web.k 2']);
  t.match(accepted('old/a'), {
    status: 'False',
    reason: 'DomainConflict',
    message: /belongs to namespace 'shop', whose object shop\/a is in the namespace of that name; /,
  });
  const gone = apply(120_000, deleted('shop/a'));
  t.strictSame(getLimits(gone.snapshot), [], 'and it stays reserved');
});

t.test('reservation of a tolerated object does not hold the namespace of that name back', async (t) => {
  const { apply } = makeCatalog();
  apply(0, replaced(limiting('old/a', 1, inForce)));
  apply(60_000, deleted('old/a'));
  const taken = apply(61_000, changed(limiting('shop/a', 2)));
  t.strictSame(getLimits(taken.snapshot), ['shop/web.k 2']);
});
