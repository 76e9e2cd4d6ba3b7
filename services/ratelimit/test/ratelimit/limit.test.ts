import t from 'tap';
import { limitsInForce } from '../../src/ratelimit/limit.ts';
import type { Descriptor } from '../../src/ratelimit/request.ts';
import { descriptor, rulesOf } from '../support/make-decider.ts';

const domain = rulesOf(`
domain: d
descriptors:
  - key: plain
    rate_limit: { name: plain, unit: hour, requests_per_unit: 5 }
  - key: free
    quota_mode: true
    rate_limit: { unlimited: true, replaces: [{ name: plain }] }
  - key: both
    rate_limit: { name: both, unit: hour, requests_per_unit: 5, replaces: [{ name: plain }] }
  - key: last
    rate_limit: { unit: hour, requests_per_unit: 5, replaces: [{ name: both }, { name: spare }] }
  - key: spare
    rate_limit: { name: spare, unlimited: true }
  - key: shadow
    shadow_mode: true
    quota_mode: true
    rate_limit: { unit: week, requests_per_unit: 0 }
  - key: files
    value: files/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 5 }
  - key: detailed
    detailed_metric: true
    rate_limit: { unit: hour, requests_per_unit: 5 }
`).domains.get('d');

function verdicts(...descriptors: readonly Descriptor[]) {
  if (domain === undefined) {
    throw new TypeError('the rules of the test have a domain');
  }
  return limitsInForce(domain, descriptors);
}

const override = { requestsPerUnit: 3, unit: 2 };

t.test('a rule is in force as it was written', async (t) => {
  t.match(verdicts(descriptor({ shadow: 'x' })), [
    {
      kind: 'limited',
      unit: 'week',
      unitSeconds: 604_800,
      requestsPerUnit: 0,
      shadowMode: true,
      quotaMode: true,
    },
  ]);
  t.match(verdicts(descriptor({ plain: 'x' })), [
    { name: 'plain', shadowMode: false, quotaMode: false, keyEntries: [{ key: 'plain', value: 'x' }] },
  ]);
});

t.test('without a matching rule there is none', async (t) => {
  t.same(verdicts(descriptor({ other: 'x' }), descriptor({})), [undefined, undefined]);
});

t.test('an unlimited rule counts nothing and still replaces', async (t) => {
  t.match(verdicts(descriptor({ plain: 'x' }), descriptor({ free: 'x' })), [
    undefined,
    { kind: 'unlimited' },
  ]);
});

t.test('a replaced unlimited rule stays unlimited', async (t) => {
  t.match(verdicts(descriptor({ spare: 'x' }), descriptor({ last: 'x' })), [
    { kind: 'unlimited' },
    { kind: 'limited' },
  ]);
});

t.test('a rule that is replaced itself still replaces, in any order', async (t) => {
  const kinds = (...keys: string[]) =>
    verdicts(...keys.map((key) => descriptor({ [key]: 'x' }))).map((verdict) => verdict?.kind);
  t.same(kinds('plain', 'both', 'last'), [undefined, undefined, 'limited']);
  t.same(kinds('last', 'both', 'plain'), ['limited', undefined, undefined]);
});

t.test('an override takes the place of the rule: neither its modes nor its replaces apply', async (t) => {
  const [limit, plain] = verdicts(descriptor({ both: 'x' }, { limit: override }), descriptor({ plain: 'x' }));
  t.match(limit, { requestsPerUnit: 3, unit: 'minute', unitSeconds: 60, name: '', staticRule: undefined });
  t.equal(plain?.kind, 'limited');
  t.match(verdicts(descriptor({ shadow: 'x' }, { limit: override })), [
    { shadowMode: false, quotaMode: false },
  ]);
  t.match(verdicts(descriptor({ plain: 'x' }, { limit: override }), descriptor({ both: 'x' })), [
    { kind: 'limited' },
    { kind: 'limited' },
  ]);
});

t.test(
  'an override is named in statistics by its entries, without the value where that is empty',
  async (t) => {
    const [limit] = verdicts(descriptor({ a: '1', b: '' }, { limit: override }));
    t.match(limit, { metricPath: ['a_1', 'b'], keyEntries: [{ key: 'a' }, { key: 'b' }] });
  },
);

t.test('a shared threshold names the counter by its pattern', async (t) => {
  t.match(verdicts(descriptor({ files: 'files/x' })), [{ keyEntries: [{ key: 'files', value: 'files/*' }] }]);
});

t.test('only a rule whose series is the same for every request is looked up by identity', async (t) => {
  const [plain, detailed] = verdicts(descriptor({ plain: 'x' }), descriptor({ detailed: 'x' }));
  t.match(plain, { staticRule: { requestsPerUnit: 5 } });
  t.match(detailed, { staticRule: undefined, metricPath: ['detailed_x'] });
});
