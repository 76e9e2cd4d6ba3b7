import t from 'tap';
import { applyReplaces } from '../src/match.ts';
import { loadDomain, matchOf } from './helpers/load-rules.ts';

const root = loadDomain(`
domain: d
descriptors:
  - { key: base, rate_limit: { unit: minute, requests_per_unit: 1, name: base } }
  - { key: nameless, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: vip, rate_limit: { unit: minute, requests_per_unit: 9, name: vip, replaces: [{ name: base }] } }
  - { key: staff, rate_limit: { unlimited: true, replaces: [{ name: vip }, { name: nobody }] } }
`);
const match = (key: string) => matchOf(root, [key, '']);

t.test('a rule drops those it names, wherever they stand in the request', async (t) => {
  t.same(applyReplaces([match('base'), match('vip')]), [true, false]);
  t.same(applyReplaces([match('vip'), match('base')]), [false, true]);
});

t.test('a rule that is dropped itself still replaces', async (t) => {
  t.same(applyReplaces([match('base'), match('vip'), match('staff')]), [true, true, false]);
});

t.test('unmatched descriptors, rules without a name and unknown names are left alone', async (t) => {
  t.same(applyReplaces([undefined, match('nameless'), match('staff')]), [false, false, false]);
  t.same(applyReplaces([match('base')]), [false]);
});
