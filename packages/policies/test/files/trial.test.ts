import t from 'tap';
import { hasTrial, promote, promotedName, putOnTrial } from '../../src/files/trial.ts';

const config = (name: string, spec: object) => ({
  ...{ apiVersion: 'ratelimit.tollgate.dev/v1alpha1', kind: 'RateLimitConfig' },
  ...{ metadata: { name, namespace: 'shop' }, spec: { domain: 'shop/web', ...spec } },
});
const policy = (limits: readonly object[], spec: object = {}) => ({
  ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy' },
  ...{ metadata: { name: 'orders', namespace: 'shop' }, spec: { hosts: ['a.test'], ...spec, limits } },
});
const perMinute = (requestsPerUnit: number) => ({ unit: 'Minute', requestsPerUnit });

t.test('a RateLimitConfig is on trial as a second object', async (t) => {
  const live = config('web', { descriptors: [{ key: 'user', rateLimit: perMinute(5) }] });
  const candidate = config('web', { descriptors: [{ key: 'user', rateLimit: perMinute(2) }] });
  const trial = putOnTrial(candidate, live);
  t.match(trial, { metadata: { name: 'web-trial' }, spec: { trial: true, domain: 'shop/web' } });
  t.same([hasTrial(live), hasTrial(trial)], [false, true]);
  t.same(putOnTrial(trial, undefined), trial, 'a trial stays as it is');
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
  t.same(promote(trial), { manifest: { ...trial, spec }, replacesTrial: false });
});

t.test('limits with a match are replaced by their match', async (t) => {
  const limit = (name: string, count: number) => ({
    name,
    match: [{ key: name }],
    rateLimit: perMinute(count),
  });
  const live = config('web', { limits: [limit('user', 5), limit('path', 6)] });
  const trial = config('web-trial', { trial: true, limits: [limit('user', 2)] });
  t.match(promote(trial, live).manifest, { spec: { limits: [limit('user', 2), limit('path', 6)] } });
});

t.test('limits of an AccessPolicy are on trial beside those in force, and replace them', async (t) => {
  const limit = (name: string, requests: number) => ({ name, by: ['User'], requests, per: 'Minute' });
  const defaults = { limits: [limit('base', 100)] };
  const live = policy([limit('per-user', 60), limit('burst', 9)], { defaults });
  const candidate = policy([limit('per-user', 50), limit('burst', 9), limit('new', 1)], { defaults });
  const trial = putOnTrial(candidate, live);
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
  t.same(putOnTrial(candidate, trial), trial, 'a second time changes nothing');
  t.same(promote(trial), { manifest: candidate, replacesTrial: false });
  const shadow = { ...limit('shadow', 3), mode: 'Shadow' };
  t.match(promote(policy([shadow])).manifest, { spec: { limits: [shadow] } });
  t.match(putOnTrial(candidate, undefined), {
    spec: { limits: [{ name: 'per-user', mode: 'Trial' }, {}, {}] },
  });
});
