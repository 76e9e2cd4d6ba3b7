// Candidates that cannot be put on trial, and what the message says to change.
import t from 'tap';
import { putOnTrial } from '../../src/files/put-on-trial.ts';
import { promote } from '../../src/files/trial.ts';

const config = (name: string, spec: object) => ({
  ...{ apiVersion: 'ratelimit.tollgate.dev/v1alpha1', kind: 'RateLimitConfig' },
  ...{ metadata: { name, namespace: 'shop' }, spec: { domain: 'web', ...spec } },
});
const policy = (spec: object) => ({
  ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy' },
  ...{ metadata: { name: 'orders', namespace: 'shop' }, spec: { hosts: ['a.test'], ...spec } },
});
const limit = (name: string, requests: number, more: object = {}) => ({
  ...{ name, by: ['User'], requests, per: 'Minute', ...more },
});
const rule = (...limits: string[]) => ({ matches: [{ path: { value: '/export' } }], limits });
const rateLimit = { unit: 'Minute', requestsPerUnit: 5 };
const asDescriptors = { descriptors: [{ key: 'user', rateLimit }] };
const asLimits = { limits: [{ name: 'user', match: [{ key: 'user' }], rateLimit }] };

t.test('a limit that applies where rules name it is refused, because no rule names its trial', async (t) => {
  const only = { only: true };
  const rules = [rule('export')];
  const live = policy({ limits: [limit('export', 5, only)], rules });
  const message = (reason: string, name: string) =>
    `the limit 'export' ${reason}, and a trial changes no rules: add it to the policy as '${name}' with mode: Trial, and name '${name}' in these rules, too`;
  t.same(putOnTrial(policy({ limits: [limit('export', 2, only)], rules }), live), {
    ok: false,
    message: message('has only, so that it applies where rules name it', 'export-trial'),
  });
  const named = policy({ limits: [limit('export', 5)], rules });
  const changed = policy({ limits: [limit('export', 2)] });
  const isNamed = { ok: false, message: message('is named by rules', 'export-trial') };
  t.same(putOnTrial(changed, named), isNamed, 'by rules in force');
  t.same(putOnTrial({ ...named }, policy({ limits: [limit('export', 9)] })), isNamed, 'by the candidate');
  t.match(putOnTrial(live, policy({ limits: [] })), { message: /add it to the policy as 'export' with/ });
  t.match(putOnTrial(live, undefined), { ok: true }, 'the rules of a new policy name it');
  t.match(putOnTrial(live, live), { ok: true }, 'it does not differ');
});

t.test('the trial that the message asks for is kept, and its promotion names the limit', async (t) => {
  const only = { only: true };
  const onTrial = limit('export-trial', 2, { ...only, mode: 'Trial' });
  const candidate = policy({
    limits: [limit('export', 5, only), onTrial],
    rules: [rule('export', 'export-trial'), rule('export-trial'), rule()],
  });
  const live = policy({ limits: [limit('export', 5, only)], rules: [rule('export')] });
  t.same(putOnTrial(candidate, live), {
    ok: false,
    message:
      "the limit 'export-trial' has the mode Trial and is for rules that name it: apply the policy as it is",
  });
  t.match(promote(candidate), {
    ok: true,
    manifest: policy({
      limits: [limit('export', 2, only)],
      rules: [rule('export'), rule('export'), rule()],
    }),
  });
});

t.test('a name without space for the suffix is refused', async (t) => {
  const [longest, tooLong] = ['a'.repeat(57), 'a'.repeat(58)];
  const trialOf = (name: string) =>
    putOnTrial(policy({ limits: [limit(name, 2)] }), policy({ limits: [limit(name, 5)] }));
  t.match(trialOf(longest), { manifest: { spec: { limits: [{}, { name: `${longest}-trial` }] } } });
  t.same(trialOf(tooLong), {
    ok: false,
    message: `the name of the limit '${tooLong}' has more than 57 characters, and no space for the suffix -trial: shorten it in the version in force first`,
  });
  const added = policy({ limits: [limit(tooLong, 2)] });
  t.match(putOnTrial(added, policy({ limits: [] })), { ok: true }, 'a new limit has no suffix');
  t.match(putOnTrial(config('b'.repeat(248), asLimits), undefined), {
    ok: false,
    message: /^the name of the object 'b+' has more than 247 characters/,
  });
  t.match(putOnTrial(config('b'.repeat(247), asLimits), undefined), { ok: true });
});

t.test('limits of another form than those in force are refused, and not promoted', async (t) => {
  const message = (what: string) =>
    `the ${what} has limits, and the object in force descriptors: write both in the same form`;
  const [live, candidate] = [config('web', asDescriptors), config('web', asLimits)];
  t.same(putOnTrial(candidate, live), { ok: false, message: message('candidate') });
  t.same(promote(config('web-trial', { ...asLimits, trial: true }), live), {
    ok: false,
    message: message('trial'),
  });
  const [own, shared] = [{ limits: [limit('a', 1)] }, { defaults: { limits: [limit('a', 2)] } }];
  const places = (one: string, other: string) =>
    `the candidate has limits in ${one}, and the policy in force in ${other}: write both in the same place`;
  t.match(putOnTrial(policy(shared), policy(own)), {
    message: places('spec.defaults', 'spec'),
  });
  t.match(putOnTrial(policy(own), policy(shared)), { message: places('spec', 'spec.defaults') });
});

t.test('an object in force whose name ends as that of a trial is not replaced by its trial', async (t) => {
  const live = config('web-trial', asLimits);
  t.match(putOnTrial(live, live), { manifest: { metadata: { name: 'web-trial-trial' } } });
});
