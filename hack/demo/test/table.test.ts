import t from 'tap';
import type { Answer } from '../judge.ts';
import type { Row, Step } from '../scenario.ts';
import { createTable, type Paint } from '../table.ts';

const plain: Paint = (_style, text) => text;

const tenant: Row = {
  path: '/orders',
  headers: { 'x-tenant': 'acme' },
  expect: { status: 200, counter: { limit: 3, remaining: 2, windowSeconds: 3600 } },
};
const open: Row = { path: '/open', expect: { status: 200 } };
const steps: readonly Step[] = [{ title: 'Both', rows: [tenant, open] }];

const counted: Answer = { status: 200, limit: '3', remaining: '2', reset: '1834', limitedBy: undefined };
const uncounted: Answer = {
  status: 200,
  limit: undefined,
  remaining: undefined,
  reset: undefined,
  limitedBy: undefined,
};

t.test('rows as expected line up under the head', async (t) => {
  const table = createTable(steps, plain);
  t.same(
    [table.head, ...table.row(tenant, counted), ...table.row(open, uncounted)],
    [
      '       request      header          status  RateLimit-Limit  -Remaining  -Reset  limited by  expected',
      'ok     GET /orders  x-tenant: acme  200     3                2           1834    -           200, 2 of 3 left',
      'ok     GET /open                    200     -                -           -       -           200, no limit',
    ],
  );
});

t.test('a wrong row is marked, and says what differs and what the cause may be', async (t) => {
  const [row, ...reasons] = createTable(steps, plain).row(tenant, uncounted);
  t.match(row, /^WRONG {2}GET \/orders .* 200, 2 of 3 left$/);
  t.same(reasons, [
    '       RateLimit-Limit is absent instead of 3',
    '       RateLimit-Remaining is absent instead of 2',
    '       RateLimit-Reset is absent instead of 1 to 3600',
    '       Envoy let it pass without an answer from the rate limit service, or no rule matched',
  ]);
});

t.test('a row without an answer says why', async (t) => {
  t.same(createTable(steps, plain).unanswered(open, 'no answer: connect ECONNREFUSED'), [
    'WRONG  GET /open',
    '       no answer: connect ECONNREFUSED',
  ]);
});

t.test('colours say ok and wrong, and do not move the columns', async (t) => {
  const table = createTable(steps, (style, text) => `<${style}>${text}</>`);
  t.match(table.row(tenant, counted)[0], /^<green>ok<\/> {5}GET \/orders/);
  t.match(table.row(tenant, uncounted)[0], /^<red>WRONG {2}GET .*<\/>$/);
});
