import { runSteps } from '@tollgate/kit/steps';
import t from 'tap';
import { groupLimiters, indexSubscribers } from '../../src/status/limiter-groups.ts';
import { limiterOf } from '../support/limiters.ts';

t.test('domain has the limiters that subscribe to it by name or by wildcard', async (t) => {
  const audience = runSteps(
    indexSubscribers(
      groupLimiters([
        limiterOf('shop', { names: new Set(['shop', 'web']) }),
        limiterOf('all'),
        limiterOf('web', { names: new Set(['web']) }),
        limiterOf('nothing', { names: new Set() }),
      ]),
    ),
  );
  const asking = (domain: string) => audience.of(domain).map(({ example }) => example);
  t.strictSame(asking('web'), ['limiter-all', 'limiter-shop', 'limiter-web']);
  t.strictSame(asking('shop'), ['limiter-all', 'limiter-shop']);
  t.strictSame(asking('other'), ['limiter-all']);
  t.equal(audience.size, 4);
});
