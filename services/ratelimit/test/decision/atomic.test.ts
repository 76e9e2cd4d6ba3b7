import t from 'tap';
import { Code } from '../../src/decision/wire/response.ts';
import { descriptor, makeDecider } from '../support/make-decider.ts';

const yaml = `
domain: d
atomic: true
descriptors:
  - key: wide
    rate_limit: { unit: hour, requests_per_unit: 100 }
  - key: narrow
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: bucket
    rate_limit: { unit: hour, requests_per_unit: 4, algorithm: token_bucket }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: plan
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 3 }
  - key: extra
    quota_mode: true
    rate_limit: { unit: hour, requests_per_unit: 1 }
`;

const of = (...keys: readonly string[]) => keys.map((key) => descriptor({ [key]: '1' }));

t.test(
  'a refused request takes nothing from its other limits, and is in no statistics of theirs',
  async (t) => {
    const { ask, rule } = makeDecider({ yaml });
    const request = of('wide', 'narrow', 'bucket');
    for (let i = 0; i < 2; i += 1) t.equal((await ask(request)).overallCode, Code.OK);
    const refused = await ask(request);
    t.equal(refused.overallCode, Code.OVER_LIMIT);
    t.same(
      refused.statuses.map(({ code, limitRemaining }) => [code, limitRemaining]),
      [
        [Code.OK, 98],
        [Code.OVER_LIMIT, 0],
        [Code.OK, 2],
      ],
    );
    t.match(rule('wide'), { totalHits: 3, withinLimit: 2, overLimit: 0 });
    t.match(rule('narrow'), { totalHits: 3, withinLimit: 2, overLimit: 1 });
    t.match(rule('bucket'), { totalHits: 3, withinLimit: 2, overLimit: 0 });
    const [wide, bucket] = (await ask(of('wide', 'bucket'))).statuses;
    t.same([wide?.limitRemaining, bucket?.limitRemaining], [97, 1]);
  },
);

t.test('a limit in shadow mode refuses nothing', async (t) => {
  const { ask } = makeDecider({ yaml });
  for (let i = 0; i < 3; i += 1) t.equal((await ask(of('shadow', 'wide'))).overallCode, Code.OK);
  t.same((await ask(of('wide'))).statuses[0]?.limitRemaining, 96);
});

t.test('quotas refuse a request once all of them are used up', async (t) => {
  const { ask } = makeDecider({ yaml });
  const request = of('plan', 'extra', 'wide');
  const codes = [];
  for (let i = 0; i < 5; i += 1) codes.push((await ask(request)).overallCode);
  t.same(codes, [Code.OK, Code.OK, Code.OK, Code.OVER_LIMIT, Code.OVER_LIMIT]);
  t.equal((await ask(of('wide'))).statuses[0]?.limitRemaining, 96);
});

t.test('with QUOTA_MODE a descriptor without a limit keeps the request allowed', async (t) => {
  const { ask } = makeDecider({ yaml, quotaMode: true });
  for (let i = 0; i < 4; i += 1) t.equal((await ask(of('narrow', 'none'))).overallCode, Code.OK);
  t.equal((await ask(of('narrow'))).overallCode, Code.OVER_LIMIT);
});

t.test('with SHADOW_MODE all limits are counted, because no request is refused', async (t) => {
  const { ask } = makeDecider({ yaml, shadowMode: true });
  for (let i = 0; i < 3; i += 1) await ask(of('wide', 'narrow'));
  t.equal((await ask(of('wide'))).statuses[0]?.limitRemaining, 96);
});

t.test('a limit that the local cache has as reached refuses the request without the store', async (t) => {
  const { ask, added, rule } = makeDecider({ yaml, localCache: true });
  const both = of('wide', 'narrow');
  await ask(both, { hitsAddend: 1 });
  t.equal((await ask(both, { hitsAddend: 2 })).overallCode, Code.OVER_LIMIT, 'one hit is left');
  await ask(both);
  t.equal((await ask(both)).overallCode, Code.OVER_LIMIT);
  const calls = added.length;
  const cached = await ask(both);
  t.equal(cached.overallCode, Code.OVER_LIMIT);
  t.equal(added.length, calls);
  t.match(rule('narrow'), { overLimit: 4, overLimitWithLocalCache: 1 });
  t.match(rule('wide'), { withinLimit: 2 });
  t.equal((await ask(of('wide'))).statuses[0]?.limitRemaining, 97);
});

t.test('a refund is counted by all limits', async (t) => {
  const { ask } = makeDecider({ yaml, localCache: true });
  const refund = (key: string) => descriptor({ [key]: '1' }, { hitsAddend: 2n, isNegativeHits: true });
  await ask(of('wide', 'narrow'), { hitsAddend: 2 });
  t.equal((await ask(of('wide', 'narrow'))).overallCode, Code.OVER_LIMIT);
  await ask([refund('wide'), refund('narrow')]);
  t.same(
    (await ask(of('wide', 'narrow'))).statuses.map(({ limitRemaining }) => limitRemaining),
    [99, 1],
  );
});
