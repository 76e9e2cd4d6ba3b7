import { runSteps } from '@tollgate/kit/steps';
import t from 'tap';
import { groupLimiters, indexSubscribers } from '../../src/status/limiter-groups.ts';
import { limiterOf } from '../support/limiters.ts';

t.test('domain has the limiters that subscribe to it by name or by wildcard', async (t) => {
  const subscribers = runSteps(
    indexSubscribers(
      groupLimiters([
        limiterOf('shop', { names: new Set(['shop', 'web']) }),
        limiterOf('all'),
        limiterOf('web', { names: new Set(['web']) }),
        limiterOf('nothing', { names: new Set() }),
      ]),
    ),
  );
  const subscribed = (domain: string) => subscribers.of(domain).map(({ example }) => example);
  t.strictSame(subscribed('web'), ['limiter-all', 'limiter-shop', 'limiter-web']);
  t.strictSame(subscribed('shop'), ['limiter-all', 'limiter-shop']);
  t.strictSame(subscribed('other'), ['limiter-all']);
  t.equal(subscribers.size, 4);
});
