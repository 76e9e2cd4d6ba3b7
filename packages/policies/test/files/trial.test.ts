import { isDeepStrictEqual } from 'node:util';
import { rows } from '@tollgate/rules/fields';
import { matchFields, ruleFields, unnamedLimitFields } from '@tollgate/rules/resource-shape';
import t from 'tap';
import { specFields } from '../../src/definition/fields.ts';
import { putOnTrial } from '../../src/files/put-on-trial.ts';
import { hasTrial, type Manifest, promote, promotedName } from '../../src/files/trial.ts';

const config = (name: string, spec: object) => ({
  ...{ apiVersion: 'ratelimit.tollgate.dev/v1alpha1', kind: 'RateLimitConfig' },
  ...{ metadata: { name, namespace: 'shop' }, spec: { domain: 'shop/web', ...spec } },
});
const policy = (limits: readonly object[], spec: object = {}) => ({
  ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy' },
  ...{ metadata: { name: 'orders', namespace: 'shop' }, spec: { hosts: ['a.test'], ...spec, limits } },
});
const toTrial = (candidate: Manifest, live: Manifest | undefined): Manifest => {
  const result = putOnTrial(candidate, live);
  if (!result.ok) throw new Error(result.message);
  return result.manifest;
};
const promoted = (trial: Manifest, live?: Manifest): Manifest => {
  const result = promote(trial, live);
  if (!result.ok) throw new Error(result.message);
  return result.manifest;
};
const perMinute = (requestsPerUnit: number) => ({ unit: 'Minute', requestsPerUnit });

t.test('a RateLimitConfig is on trial as a second object', async (t) => {
  const live = config('web', { descriptors: [{ key: 'user', rateLimit: perMinute(5) }] });
  const candidate = config('web', { descriptors: [{ key: 'user', rateLimit: perMinute(2) }] });
  const trial = toTrial(candidate, live);
  t.match(trial, { metadata: { name: 'web-trial' }, spec: { trial: true, domain: 'shop/web' } });
  t.same([hasTrial(live), hasTrial(trial)], [false, true]);
  t.same(toTrial(trial, undefined), trial, 'a trial stays as it is');
  t.equal(promotedName({ name: 'web-trial' }), 'web');
  t.equal(promotedName({ name: 'web' }), undefined);
});

t.test('a promoted RateLimitConfig replaces its descriptors, and keeps the others', async (t) => {
  const other = { key: 'address', rateLimit: perMinute(9) };
  const live = config('web', {
    descriptors: [
      { key: 'user', rateLimit: perMinute(5), descriptors: [{ key: 'path', rateLimit: perMinute(1) }] },
      other,
    ],
  });
  const trial = config('web-trial', {
    trial: true,
    descriptors: [
      { key: 'user', rateLimit: perMinute(2) },
      { key: 'user', value: 'ann', rateLimit: perMinute(7) },
    ],
  });
  t.same(promote(trial, live), {
    ok: true,
    manifest: config('web', {
      descriptors: [
        { key: 'user', rateLimit: perMinute(2), descriptors: [{ key: 'path', rateLimit: perMinute(1) }] },
        other,
        { key: 'user', value: 'ann', rateLimit: perMinute(7) },
      ],
    }),
    replacesTrial: true,
  });
  const { trial: _trial, ...spec } = trial.spec as { readonly trial?: boolean };
  t.same(promote(trial), { ok: true, manifest: { ...trial, spec }, replacesTrial: false });
});

t.test('limits with a match are replaced by their match', async (t) => {
  const limit = (name: string, count: number) => ({
    name,
    match: [{ key: name }],
    rateLimit: perMinute(count),
  });
  const live = config('web', { limits: [limit('user', 5), limit('path', 6)] });
  const trial = config('web-trial', { trial: true, limits: [limit('user', 2)] });
  t.match(promoted(trial, live), { spec: { limits: [limit('user', 2), limit('path', 6)] } });
  const merged = (changed: object) => promoted(config('web-trial', { trial: true, limits: [changed] }), live);
  const renamed = { ...limit('user', 2), name: 'users' };
  t.strictSame(merged(renamed), config('web', { limits: [renamed, limit('path', 6)] }));
  const moved = { ...limit('user', 2), match: [{ key: 'path' }] };
  t.strictSame(merged(moved), config('web', { limits: [moved] }), 'no two have a name or match');
});

t.test('limits of an AccessPolicy are on trial beside those in force, and replace them', async (t) => {
  const limit = (name: string, requests: number) => ({ name, by: ['User'], requests, per: 'Minute' });
  const defaults = { limits: [limit('base', 100)] };
  const live = policy([limit('per-user', 60), limit('burst', 9)], { defaults });
  const candidate = policy([limit('per-user', 50), limit('burst', 9), limit('new', 1)], { defaults });
  const trial = toTrial(candidate, live);
  t.same(
    trial,
    policy(
      [
        ...[limit('per-user', 60), limit('burst', 9)],
        { ...limit('per-user-trial', 50), mode: 'Trial' },
        { ...limit('new', 1), mode: 'Trial' },
      ],
      { defaults },
    ),
  );
  t.equal(hasTrial(trial), true);
  t.same(toTrial(candidate, trial), trial, 'a second time changes nothing');
  t.same(promote(trial), { ok: true, manifest: candidate, replacesTrial: false });
  const shadow = { ...limit('shadow', 3), mode: 'Shadow' };
  t.match(promoted(policy([shadow])), { spec: { limits: [shadow] } });
  t.match(toTrial(candidate, undefined), {
    spec: { limits: [{ name: 'per-user', mode: 'Trial' }, {}, {}] },
  });
});

type Fields = Readonly<Record<string, unknown>>;

const samples: Readonly<Record<string, unknown>> = {
  ...{ text: 'a', texts: ['a'], percent: '5%', choice: 'Allow', flag: true, count: 7 },
  ...{
    names: [{ name: 'a' }],
    json: { a: 1 },
    attributes: ['Ip'],
    'parts by name': { gold: { requests: 1 } },
  },
};

/** Values of the fields that have one of their own: no identity and no list of others. */
function valuesOf(
  fields: readonly { readonly name: string; readonly kind: string }[],
  except: string[] = [],
): Fields {
  const own = fields.filter(({ name, kind }) => samples[kind] !== undefined && !except.includes(name));
  return Object.fromEntries(own.map(({ name, kind }) => [name, samples[kind]]));
}

/** Each value alone, none, and all of them. */
const variantsOf = (values: Fields): readonly Fields[] => [
  ...Object.entries(values).map(([name, value]) => ({ [name]: value })),
  ...[{}, values],
];

/** Specs that differ in one field of the table, or in all. */
function specsOf(): Readonly<Record<string, readonly Fields[]>> {
  const options = variantsOf({ ...valuesOf(rows.domain, ['domain']), limiterClassName: 'edge' });
  const descriptor = { key: 'user', value: 'a*' };
  const descriptors = [
    ...variantsOf(valuesOf(rows.descriptor, ['key', 'value'])).map((one) => ({ rateLimit: {}, ...one })),
    ...variantsOf(valuesOf(rows.limit)).map((rateLimit) => ({ rateLimit })),
  ];
  const limit = { name: 'per-user', match: [descriptor], rateLimit: {} };
  const limits = [
    ...variantsOf(valuesOf(matchFields, ['key', 'value'])).map((one) => ({
      match: [{ ...one, ...descriptor }],
    })),
    ...variantsOf(valuesOf(ruleFields)),
    ...variantsOf(valuesOf(unnamedLimitFields)).map((rateLimit) => ({ rateLimit })),
  ];
  return {
    options: options.map((one) => ({ ...one, descriptors: [descriptor] })),
    descriptors: descriptors.map((one) => ({ descriptors: [{ ...descriptor, ...one }] })),
    limits: limits.map((one) => ({ limits: [{ ...limit, ...one }] })),
  };
}

/** Pairs of versions of which the promoted second one differs from it. */
function findDiffering(versions: readonly Manifest[]): readonly (readonly Manifest[])[] {
  return versions.flatMap((live) =>
    versions.flatMap((candidate) => {
      const manifest = promoted(toTrial(candidate, live), live);
      return isDeepStrictEqual(manifest, candidate) ? [] : [[live, candidate, manifest]];
    }),
  );
}

t.test('a promoted RateLimitConfig is the candidate, whichever fields it has or lacks', async (t) => {
  for (const [part, specs] of Object.entries(specsOf())) {
    t.ok(specs.length > 3, part);
    t.strictSame(findDiffering(specs.map((spec) => config('web', spec))), [], part);
  }
});

t.test(
  'a promoted limit of an AccessPolicy is the candidate, whichever fields it has or lacks',
  async (t) => {
    const fields = Object.entries(specFields.limits.fields).map(([name, { kind }]) => ({ name, kind }));
    const limits = variantsOf(valuesOf(fields, ['name', 'mode', 'only'])).map((one) => ({
      name: 'per-user',
      ...one,
    }));
    t.ok(limits.length > 3);
    t.strictSame(findDiffering(limits.map((limit) => policy([limit]))), []);
  },
);

t.test('a trial of a descriptor below another one leaves the limit of the other one in force', async (t) => {
  const below = (count: number) => ({ descriptors: [{ key: 'path', rateLimit: perMinute(count) }] });
  const limit = { rateLimit: perMinute(5), quotaMode: true };
  const live = config('web', { descriptors: [{ key: 'user', ...limit, ...below(2) }] });
  const trial = config('web-trial', {
    trial: true,
    descriptors: [{ key: 'user', shadowMode: true, ...below(1) }],
  });
  const expected = config('web', { descriptors: [{ key: 'user', ...limit, ...below(1) }] });
  t.strictSame(promoted(trial, live), expected);
});

t.test(
  'a Shadow limit of an AccessPolicy is not put on trial, because it would deny when promoted',
  async (t) => {
    const limit = { name: 'per-user', by: ['User'], requests: 3, per: 'Minute' };
    const shadow = policy([{ ...limit, mode: 'Shadow' }]);
    for (const live of [undefined, policy([limit]), policy([])]) {
      const message =
        "the limit 'per-user' has the mode Shadow, which never denies: apply it without a trial, or remove its mode";
      t.strictSame(putOnTrial(shadow, live), { ok: false, message });
    }
    t.strictSame(
      toTrial(policy([{ mode: 'Shadow', ...limit }]), shadow),
      shadow,
      'in force already, with its keys in another order',
    );
    t.strictSame(promoted(toTrial(policy([limit]), shadow)), policy([limit]), 'Shadow in force');
  },
);
