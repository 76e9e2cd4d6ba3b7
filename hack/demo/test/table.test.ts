import t from 'tap';
import { createTable, type Paint } from '../output.ts';
import type { Row, Step } from '../scenario.ts';
import { scenario } from '../scenario.ts';
import type { Outcome } from '../story.ts';

const plain: Paint = (_style, text) => text;

const orders: Row = { what: 'GET /orders', expect: '200 ada (free), 4 of 5 left', act: async () => '' };
const refused: Row = { what: 'GET /stock', expect: '403 role_not_allowed', act: async () => '' };
const steps: readonly Step[] = [{ title: 'Both', rows: [orders, refused] }];

const outcome = (actual: string, asExpected: boolean): Outcome => ({
  actual,
  asExpected,
  answered: true,
  tookMs: 12.3,
});

t.test('rows line up under the head', async (t) => {
  const table = createTable(steps, plain);
  t.same(
    [
      table.head,
      table.row(orders, outcome(orders.expect, true)),
      table.row(refused, outcome('200 ada (free), not counted', false)),
    ],
    [
      '       what           ms  expected                     actual',
      'ok     GET /orders    12  200 ada (free), 4 of 5 left  200 ada (free), 4 of 5 left',
      'WRONG  GET /stock     12  403 role_not_allowed         200 ada (free), not counted',
    ],
  );
});

t.test('colours show success and failure, and do not move columns', async (t) => {
  const table = createTable(steps, (style, text) => `<${style}>${text}</>`);
  t.match(table.row(orders, outcome(orders.expect, true)), /^<green>ok<\/> {5}GET \/orders/);
  t.match(table.row(orders, outcome('something else', false)), /^<red>WRONG {2}GET .*<\/>$/);
});

t.test('the scenario fits a terminal of 100 columns', async (t) => {
  const table = createTable(scenario, plain);
  for (const row of scenario.flatMap(({ rows }) => rows)) {
    t.ok(table.row(row, outcome(row.expect, true)).length <= 100, row.what);
  }
});
