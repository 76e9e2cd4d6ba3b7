import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runSteps } from '@tollgate/kit/time';
import { getTrialDocument } from '@tollgate/rules/rule-document';
import { decodeMessage } from '@tollgate/rules/rule-message';
import t from 'tap';
import type { Snapshot } from '../../src/catalog/snapshot.ts';
import { changed, deleted, getLimits, makeCatalog, replaced } from '../support/catalogs.ts';
import { badSpec, makeDescriptor, makeObject } from '../support/manifests.ts';

t.test('object becomes the resource of its domain', async (t) => {
  const catalog = makeCatalog();
  const { snapshot, results } = catalog.apply(replaced(makeObject('ns/a', { domain: 'shop/web' })));
  t.strictSame([...snapshot.resources.keys()], ['shop/web']);
  t.match(snapshot.resources.get('shop/web'), { name: 'shop/web', version: /^[0-9a-f]{32}$/ });
  t.match(snapshot.version, /^[0-9a-f]{32}$/);
  t.strictSame(getLimits(snapshot), ['shop/web.k 10']);
  t.strictSame(results, [
    {
      id: 'ns/a',
      uid: 'ns/a',
      generation: 1,
      label: 'ns/a',
      domain: 'shop/web',
      inForce: 1,
      rules: 1,
      lastValid: {
        generation: 1,
        spec: { domain: 'shop/web', descriptors: [makeDescriptor({ key: 'k' })] },
      },
      domainOwner: undefined,
      accepted: { status: 'True', reason: 'Accepted', message: "1 limit for domain 'shop/web'" },
    },
  ]);
  t.equal(catalog.rules, 1);
});

t.test('invalid object is not served, its message has the path, and others are not affected', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(makeObject('ns/a', { domain: 'a' }), makeObject('ns/b', { spec: badSpec })),
  );
  t.strictSame([...snapshot.resources.keys()], ['a']);
  const bad = catalog.results.get('ns/b');
  t.match(bad, { rules: 0, accepted: { status: 'False', reason: 'Invalid' } });
  t.equal(bad?.inForce, undefined);
  t.match(
    bad?.accepted.message,
    /^not valid, and nothing of this object is in force:\nspec\.descriptors\[0\]\.rateLimit\.unit: /,
  );
});

t.test('object on which the reader throws is the only one with a problem', async (t) => {
  const catalog = makeCatalog();
  const spec = Object.defineProperty({ descriptors: [] }, 'domain', {
    enumerable: true,
    get() {
      throw new RangeError('too deep');
    },
  });
  const { snapshot } = catalog.apply(
    replaced(
      makeObject('ns/a', { domain: 'a' }),
      makeObject('ns/b', { spec }),
      makeObject('ns/c', { domain: 'c' }),
    ),
  );
  t.strictSame([...snapshot.resources.keys()], ['a', 'c']);
  t.match(catalog.results.get('ns/b')?.accepted, {
    reason: 'Invalid',
    message: /\ncannot be read: too deep$/,
  });
});

t.test('problem found by the loader of limiters has its path', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObject('ns/a', { rules: [{ key: 'k' }, { key: 'k' }] })));
  t.match(catalog.results.get('ns/a')?.accepted, {
    reason: 'Invalid',
    message: /\nspec\.descriptors\[1\].*: duplicate descriptor composite key 'shop\.k'/,
  });
});

t.test('excess problems of an object are counted', async (t) => {
  const catalog = makeCatalog();
  const descriptors = Array.from({ length: 50 }, (_, i) => ({
    key: `k${i}`,
    rateLimit: { unit: 'x'.repeat(900), requestsPerUnit: 1 },
  }));
  catalog.apply(replaced(makeObject('ns/a', { spec: { domain: 'd', descriptors } })));
  const message = catalog.results.get('ns/a')?.accepted.message ?? '';
  t.match(message, /\nand \d+ more$/);
  t.ok(message.length < 5000, `${message.length} characters`);
});

t.test('after an invalid edit the last valid version stays in force', async (t) => {
  const catalog = makeCatalog();
  const before = catalog.apply(replaced(makeObject('ns/a'))).snapshot;
  const { snapshot, results } = catalog.apply(changed(makeObject('ns/a', { spec: badSpec, generation: 2 })));
  t.equal(snapshot.version, before.version);
  t.match(results, [
    {
      generation: 2,
      inForce: 1,
      rules: 1,
      accepted: { status: 'False', reason: 'Invalid', message: /^not valid; generation 1 stays in force:\n/ },
    },
  ]);
  const repaired = catalog.apply(
    changed(makeObject('ns/a', { rules: [{ key: 'k', requestsPerUnit: 7 }], generation: 3 })),
  );
  t.strictSame(getLimits(repaired.snapshot), ['shop.k 7']);
  t.match(repaired.results, [{ generation: 3, inForce: 3, accepted: { status: 'True' } }]);
});

t.test('object created again under the same name has no last valid version', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObject('ns/a', { uid: '1' })));
  const { snapshot } = catalog.apply(changed(makeObject('ns/a', { uid: '2', spec: badSpec })));
  t.equal(snapshot.resources.size, 0);
  t.equal(catalog.results.get('ns/a')?.inForce, undefined);
});

t.test('deleted object removes its rules', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObject('ns/a'), makeObject('ns/b', { domain: 'b' })));
  const change = catalog.apply(deleted('ns/a'));
  t.strictSame([...change.snapshot.resources.keys()], ['b']);
  t.strictSame(change.deleted, ['ns/a']);
  t.strictSame([...catalog.results.keys()], ['ns/b']);
  t.equal(catalog.rules, 1);
  t.strictSame(catalog.apply(deleted('ns/unknown')).deleted, []);
});

t.test('object missing from a new list is deleted', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObject('ns/a'), makeObject('ns/b', { domain: 'b' })));
  const change = catalog.apply(replaced(makeObject('ns/b', { domain: 'b' })));
  t.strictSame([...change.snapshot.resources.keys()], ['b']);
  t.strictSame(change.deleted, ['ns/a']);
  t.strictSame(change.results, [], 'the unchanged object has no new result');
});

t.test('objects of a namespace are merged, older rules first', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(
      makeObject('ns/a', { createdMs: 2, rules: [{ key: 'a' }] }),
      makeObject('ns/b', { createdMs: 1, rules: [{ key: 'b' }] }),
    ),
  );
  t.strictSame(getLimits(snapshot), ['shop.a 10', 'shop.b 10']);
  const other = makeCatalog().apply(
    replaced(makeObject('ns/x', { rules: [{ key: 'b' }, { key: 'a' }] })),
  ).snapshot;
  t.equal(snapshot.version, other.version, 'the same as one object with the rules in that order');
});

t.test('top-level rule of an older object is left out of the younger one, with a message', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(
      makeObject('ns/younger', {
        createdMs: 2,
        rules: [{ key: 'k', value: 'x', requestsPerUnit: 1 }, { key: 'own' }],
      }),
      makeObject('ns/older', { createdMs: 1, rules: [{ key: 'k', value: 'x' }, { key: 'k' }] }),
    ),
  );
  t.strictSame(getLimits(snapshot), ['shop.k 10', 'shop.k_x 10', 'shop.own 10']);
  t.match(catalog.results.get('ns/older')?.accepted, { status: 'True' });
  t.match(catalog.results.get('ns/younger'), {
    inForce: 1,
    rules: 1,
    accepted: {
      status: 'False',
      reason: 'DuplicateKey',
      message:
        'top-level rules that another object of the namespace has for this domain are left out; ' +
        "the other limit is in force:\n'k_x' is already in ns/older, which is older",
    },
  });
});

t.test(
  'settings of the domain of the oldest object apply, and a younger one cannot change them',
  async (t) => {
    const catalog = makeCatalog();
    const object = (id: string, createdMs: number, settings: object) =>
      makeObject(id, {
        createdMs,
        spec: { domain: 'shop', ...settings, descriptors: [makeDescriptor({ key: id })] },
      });
    const { snapshot } = catalog.apply(
      replaced(
        object('ns/a', 1, { atomic: true }),
        object('ns/b', 2, { onStoreFailure: 'Deny' }),
        object('ns/c', 3, { onStoreFailure: 'Local', atomic: true }),
      ),
    );
    t.strictSame(
      getLimits(snapshot),
      ['ns/a', 'ns/b', 'ns/c'].map((key) => `shop.${key} 10 on_store_failure=deny atomic=true`),
    );
    t.match(catalog.results.get('ns/b')?.accepted, { status: 'True' });
    t.match(catalog.results.get('ns/c'), {
      rules: 1,
      accepted: { reason: 'DuplicateKey', message: /'onStoreFailure' is already in ns\/b, which is older/ },
    });
  },
);

t.test('key with an underscore collides with an equal key and value, as in limiters', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(
      makeObject('ns/older', { createdMs: 1, rules: [{ key: 'a', value: 'b' }] }),
      makeObject('ns/younger', { createdMs: 2, rules: [{ key: 'a_b', requestsPerUnit: 1 }] }),
    ),
  );
  t.strictSame(getLimits(snapshot), ['shop.a_b 10']);
  const younger = catalog.results.get('ns/younger');
  t.match(younger?.accepted, { reason: 'DuplicateKey', message: /nothing of this object is in force/ });
  t.equal(younger?.inForce, undefined);
});

t.test('edit of an older object takes from a younger one only the rules that it has itself', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(
    replaced(
      makeObject('ns/older', { createdMs: 1, rules: [{ key: 'a' }] }),
      makeObject('ns/younger', { createdMs: 2, rules: [{ key: 'b' }, { key: 'c' }] }),
    ),
  );
  const { snapshot, results } = catalog.apply(
    changed(
      makeObject('ns/older', {
        createdMs: 1,
        generation: 2,
        rules: [{ key: 'a' }, { key: 'b', requestsPerUnit: 5 }],
      }),
    ),
  );
  t.strictSame(getLimits(snapshot), ['shop.a 10', 'shop.b 5', 'shop.c 10']);
  t.strictSame(
    results.map(({ id, accepted }) => `${id} ${accepted.reason}`),
    ['ns/older Accepted', 'ns/younger DuplicateKey'],
  );
  const freed = catalog.apply(deleted('ns/older'));
  t.strictSame(getLimits(freed.snapshot), ['shop.b 10', 'shop.c 10']);
  t.match(freed.results, [{ id: 'ns/younger', accepted: { status: 'True' } }]);
});

t.test('domain belongs to the namespace of its oldest object, and others get a message', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(
      makeObject('b/late', { createdMs: 2, rules: [{ key: 'late' }] }),
      makeObject('a/first', { createdMs: 1, rules: [{ key: 'first' }] }),
      makeObject('a/third', { createdMs: 3, rules: [{ key: 'third' }] }),
    ),
  );
  t.strictSame(getLimits(snapshot), ['shop.first 10', 'shop.third 10']);
  const late = catalog.results.get('b/late');
  t.match(late, { rules: 0, accepted: { status: 'False', reason: 'DomainConflict' } });
  t.match(late?.accepted.message, /domain 'shop' belongs to namespace 'a', whose object a\/first is older/);
  const { snapshot: next } = catalog.apply(deleted('a/first'));
  t.strictSame(getLimits(next), ['shop.late 10'], 'the next oldest takes over');
  t.match(catalog.results.get('b/late')?.accepted, { status: 'True' });
  t.match(catalog.results.get('a/third')?.accepted, {
    reason: 'DomainConflict',
    message: /b\/late is older/,
  });
});

t.test('equal age is decided by the order of the source', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObject('b/x'), makeObject('a/x')));
  t.equal(catalog.results.get('a/x')?.accepted.reason, 'Accepted');
  t.match(catalog.results.get('b/x')?.accepted, {
    reason: 'DomainConflict',
    message: /whose object a\/x comes first/,
  });
});

t.test('message names the file of an object', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(
    replaced(makeObject('ns/a', { label: 'a.yaml#1' }), makeObject('ns/b', { label: 'a.yaml#2' })),
  );
  t.match(
    catalog.results.get('ns/b')?.accepted.message,
    /\n'k' is already in ns\/a \(a\.yaml#1\), which comes first$/,
  );
});

t.test('invalid edit of an object without rules in force says so', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(
    replaced(
      makeObject('a/1', { createdMs: 1 }),
      makeObject('a/2', { createdMs: 2, rules: [{ key: 'k' }, { key: 'l' }] }),
      makeObject('b/1', { createdMs: 3 }),
    ),
  );
  catalog.apply(
    changed(makeObject('a/2', { createdMs: 2, generation: 2, spec: badSpec })),
    changed(makeObject('b/1', { createdMs: 3, generation: 2, spec: badSpec })),
  );
  t.match(catalog.results.get('a/2'), {
    inForce: 1,
    rules: 1,
    accepted: {
      reason: 'Invalid',
      message: /^not valid; generation 1 stays in force but for what a\/1 has too:\n/,
    },
  });
  const lost = catalog.results.get('b/1');
  t.match(lost?.accepted, {
    reason: 'Invalid',
    message:
      /^not valid; nothing of this object is in force, because domain 'shop' belongs to namespace 'a':\n/,
  });
  t.equal(lost?.inForce, undefined);
});

t.test('object that was never valid owns no domain', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(
    replaced(makeObject('a/bad', { createdMs: 1, spec: badSpec }), makeObject('b/good', { createdMs: 2 })),
  );
  t.strictSame(getLimits(snapshot), ['shop.k 10']);
});

t.test('warnings are reported for an object that is alone in its domain', async (t) => {
  const catalog = makeCatalog();
  const spec = {
    domain: 'shop',
    descriptors: [
      { key: 'k', rateLimit: { unit: 'Hour', requestsPerUnit: 1, replaces: [{ name: 'missing' }] } },
    ],
  };
  catalog.apply(replaced(makeObject('ns/a', { spec })));
  t.match(catalog.results.get('ns/a')?.accepted, {
    status: 'True',
    message: /to be checked:\n.*replaces 'missing'/,
  });
  catalog.apply(changed(makeObject('ns/b', { rules: [{ key: 'other' }] })));
  t.equal(catalog.results.get('ns/a')?.accepted.message, "1 limit for domain 'shop'");
});

t.test('published snapshot does not change', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(replaced(makeObject('ns/a', { domain: 'a' })));
  catalog.apply(changed(makeObject('ns/b', { domain: 'b' })), deleted('ns/a'));
  t.strictSame([...snapshot.resources.keys()], ['a']);
});

t.test('status write changes nothing', async (t) => {
  const catalog = makeCatalog();
  const { snapshot } = catalog.apply(replaced(makeObject('ns/a')));
  const next = catalog.apply(changed(makeObject('ns/a')));
  t.equal(next.snapshot, snapshot);
  t.strictSame(next.results, []);
});

t.test('atomic and onStoreFailure of objects on trial are apart from those in force', async (t) => {
  const catalog = makeCatalog();
  const settings = { atomic: true, onStoreFailure: 'Deny' };
  const onTrial = (requestsPerUnit: number, more: object) => ({
    domain: 'shop',
    trial: true,
    descriptors: [makeDescriptor({ key: `k${requestsPerUnit}`, requestsPerUnit })],
    ...more,
  });
  const documentOf = ({ resources }: Snapshot) => {
    const any = resources.get('shop')?.any ?? new Uint8Array();
    return runSteps(decodeMessage(fromBinary(AnySchema, any).value));
  };
  catalog.apply(replaced(makeObject('ns/a')));
  const { snapshot } = catalog.apply(
    changed(makeObject('ns/b', { createdMs: 1, spec: onTrial(5, settings) })),
    changed(makeObject('ns/c', { createdMs: 2, spec: onTrial(6, { atomic: false }) })),
  );
  const document = documentOf(snapshot);
  t.match(document, { atomic: undefined, onStoreFailure: undefined });
  t.match(getTrialDocument(document), { atomic: true, onStoreFailure: 'deny' });
  t.match(catalog.results.get('ns/c')?.accepted, {
    reason: 'DuplicateKey',
    message: /'atomic' is already in ns\/b/,
  });
});

t.test('objects on trial are merged with each other only, and say that they are on trial', async (t) => {
  const catalog = makeCatalog();
  const trial = (requestsPerUnit: number) => ({
    domain: 'shop',
    trial: true,
    descriptors: [makeDescriptor({ key: 'k', requestsPerUnit })],
  });
  const { snapshot: before } = catalog.apply(replaced(makeObject('ns/a')));
  const { snapshot } = catalog.apply(
    changed(makeObject('ns/b', { createdMs: 1, spec: trial(5) })),
    changed(makeObject('ns/c', { createdMs: 2, spec: trial(6) })),
  );
  t.strictSame(getLimits(snapshot), ['shop.k 10']);
  t.not(snapshot.version, before.version);
  t.equal(catalog.rules, 1, 'limits in force');
  t.match(catalog.results.get('ns/a')?.accepted, { status: 'True', reason: 'Accepted' });
  t.match(catalog.results.get('ns/b'), {
    rules: 1,
    inForce: 1,
    accepted: {
      status: 'True',
      reason: 'OnTrial',
      message: "1 limit for domain 'shop' on trial: limiters show what would be refused, and refuse nothing",
    },
  });
  t.match(catalog.results.get('ns/c')?.accepted, {
    reason: 'DuplicateKey',
    message: /nothing of this object is on trial:\n'k' is already in ns\/b/,
  });

  const { snapshot: edited } = catalog.apply(
    deleted('ns/c'),
    changed(makeObject('ns/b', { createdMs: 1, generation: 2, spec: trial(7) })),
  );
  t.not(edited.version, snapshot.version);
  const { snapshot: alone } = catalog.apply(deleted('ns/a'));
  t.strictSame(getLimits(alone), [], 'a domain with rules on trial only has no others');
  t.strictSame([...alone.resources.keys()], ['shop']);
  const spec = { ...trial(7), trial: false };
  const { snapshot: inForce } = catalog.apply(
    changed(makeObject('ns/b', { createdMs: 1, generation: 3, spec })),
  );
  t.strictSame(getLimits(inForce), ['shop.k 7']);
  t.equal(catalog.results.get('ns/b')?.accepted.reason, 'Accepted');
});
