import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { createRequestBudget } from '../../../src/surfaces/grpc/request-budget.ts';

t.test('a budget is spent, and earned back with time, but never more than it was', async (t) => {
  const clock = fakeClock();
  const budget = createRequestBudget({ burst: 3, perSecond: 2, bytesPerRequest: 100 }, clock.now);
  const takeAll = (): number => {
    let taken = 0;
    while (budget.take(100)) taken += 1;
    return taken;
  };
  t.equal(takeAll(), 3);
  clock.advance(499);
  t.equal(takeAll(), 0);
  clock.advance(1);
  t.equal(takeAll(), 1);
  clock.advance(3_600_000);
  t.equal(takeAll(), 3);
  clock.set(0);
  t.equal(takeAll(), 0, 'a clock that goes back gives nothing');
});

t.test('a large request costs as much as several', async (t) => {
  const budget = createRequestBudget({ burst: 3, perSecond: 0, bytesPerRequest: 100 }, fakeClock().now);
  t.notOk(budget.take(301));
  t.ok(budget.take(101), 'what was too much has cost nothing');
  t.notOk(budget.take(101));
  t.ok(budget.take(0));
});
