import t from 'tap';
import { readStoredManifest, toStoredManifest, toStoredVersion } from '../../src/catalog/stored-version.ts';
import { changed, getLimits, makeCatalog, replaced } from '../support/catalogs.ts';
import { badSpec, makeDescriptor, makeObject } from '../support/manifests.ts';

/** A spec of one limit. */
const makeSpec = (requestsPerUnit: number) => ({
  domain: 'shop',
  descriptors: [makeDescriptor({ key: 'k', requestsPerUnit })],
});

/** An invalid generation 3 with what was stored before. */
const makeInvalid = (stored: ReturnType<typeof toStoredVersion> | undefined) => ({
  ...makeObject('ns/a', { spec: badSpec, generation: 3 }),
  stored,
});

function makeStored(generation: number, spec: unknown) {
  const manifest = toStoredManifest(generation, spec);
  if (manifest === undefined) throw new Error('too large');
  return toStoredVersion(manifest);
}

t.test('stored version of an invalid object is in force after a restart', async (t) => {
  const { snapshot, results } = makeCatalog().apply(replaced(makeInvalid(makeStored(2, makeSpec(7)))));
  t.strictSame(getLimits(snapshot), ['shop.k 7']);
  t.match(results, [
    {
      inForce: 2,
      rules: 1,
      lastValid: { generation: 2, spec: makeSpec(7) },
      accepted: { reason: 'Invalid', message: /generation 2 stays in force:\nspec\.descriptors\[0\]/ },
    },
  ]);
});

t.test('replicas that have seen different versions agree on the newest valid one', async (t) => {
  const catalog = makeCatalog();
  catalog.apply(replaced(makeObject('ns/a', { spec: makeSpec(1) })));
  t.strictSame(getLimits(catalog.apply(changed(makeInvalid(undefined))).snapshot), ['shop.k 1']);
  const newer = makeInvalid(makeStored(2, makeSpec(7)));
  t.strictSame(getLimits(catalog.apply(changed(newer)).snapshot), ['shop.k 7']);
  const older = makeInvalid(makeStored(1, makeSpec(1)));
  t.strictSame(getLimits(catalog.apply(changed(older)).snapshot), ['shop.k 7']);
});

t.test('stored version is validated, and one that is refused or damaged is named', async (t) => {
  const refused = makeCatalog().apply(replaced(makeInvalid(makeStored(2, badSpec))));
  t.equal(refused.snapshot.resources.size, 0);
  t.match(refused.results, [
    {
      lastValid: undefined,
      accepted: {
        message:
          /nothing of this object is in force:\n.*\nthe last valid version, generation 2, is refused now, too:\nspec\.descriptors\[0\]/,
      },
    },
  ]);
  const damaged = toStoredVersion({ generation: 2, spec: 'H4sIAAAA' });
  const { results } = makeCatalog().apply(replaced(makeInvalid(damaged)));
  t.match(results[0]?.accepted.message, /refused now, too:\nthe stored copy is damaged: /);
});

t.test('copy of another object or without content is not read', async (t) => {
  const lastValid = toStoredManifest(5, makeSpec(1));
  t.match(readStoredManifest({ status: { lastValid } }, 5), { generation: 5 });
  t.equal(readStoredManifest({ status: { lastValid } }, 4), undefined, 'restored with a former status');
  for (const status of [undefined, {}, { lastValid: { generation: 1 } }, { lastValid: { spec: 'x' } }])
    t.equal(readStoredManifest({ status }, 9), undefined);
});

t.test('bomb is refused, and a large spec is stored compressed', async (t) => {
  const bomb = toStoredManifest(1, 'x'.repeat(10_000_000));
  t.throws(() => bomb && toStoredVersion(bomb).readSpec(), { code: 'ERR_BUFFER_TOO_LARGE' });
  const descriptors = Array.from({ length: 8_000 }, (_, i) =>
    makeDescriptor({ key: 'user', value: `user-${i}` }),
  );
  const stored = toStoredManifest(1, { domain: 'shop', descriptors });
  t.ok(stored !== undefined && stored.spec.length < 100_000, `${stored?.spec.length}`);
});
