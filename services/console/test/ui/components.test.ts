// Components as markup. Pages in a browser are in test/pages.
import { html } from '@tollgate/kit/html';
import t from 'tap';
import { limitBar, sparkline } from '../../src/ui/charts.ts';
import { numberedLines, unifiedDiff } from '../../src/ui/code.ts';
import { confirmation, emptyState, problem } from '../../src/ui/messages.ts';
import { quoteArgument } from '../../src/ui/shell.ts';
import { table } from '../../src/ui/table.ts';
import { badge, command, copyable, details, quantity, time } from '../../src/ui/text.ts';

const attack = `"><script>alert(1)</script>`;
const url = new URL('http://console/users?q=a&cursor=b');

t.test('every component escapes texts', async (t) => {
  const shown = {
    badge: badge(attack),
    command: command(attack),
    copyable: copyable(attack),
    details: details({ [attack]: attack }),
    emptyState: emptyState(attack, attack),
    problem: problem({ title: attack, text: attack, command: attack }),
    confirmation: confirmation({
      ...{ question: attack, action: attack, button: attack, back: attack },
      fields: html``,
    }),
    quantity: quantity(1, attack),
    sparkline: sparkline([1, 2], attack),
    time: time(attack, 0),
    numberedLines: numberedLines(attack, attack, [{ line: 1, tone: 'bad', text: attack }]),
    unifiedDiff: unifiedDiff(attack, [{ oldStart: 1, newStart: 1, lines: [`+${attack}`] }]),
    table: table({
      ...{ caption: attack, rows: [attack], empty: html``, nextCursor: attack, rowId: String },
      url: new URL(`http://console/users?q=${encodeURIComponent(attack)}`),
      columns: [{ title: attack, sort: attack, cell: (row) => row }],
    }),
  };
  for (const [name, markup] of Object.entries(shown)) {
    t.match(String(markup), /&gt;|%3E/, `${name} shows the text`);
    t.notMatch(String(markup), /<script|"">/, name);
  }
});

t.test('relative times have the exact one on hover', async (t) => {
  const now = Date.parse('2026-01-02T03:04:05Z');
  const show = (at: number) => String(time(now + at * 1000, now));
  t.match(show(0), '>now<');
  t.match(show(-90), '>1 min ago<');
  t.match(show(-86_400 * 3), '>3 d ago<');
  t.match(show(3600), '>in 1 h<');
  t.match(show(0), 'title="2026-01-02 03:04:05 UTC"');
  t.equal(time(undefined, now), undefined);
});

t.test('numbers have a unit', async (t) => {
  t.match(String(quantity(1234.5, 'req/s')), /1,235 .*req\/s/);
  t.match(String(quantity(0.012345, 's')), /0\.0123 /);
  t.match(String(quantity(Number.NaN, 's')), '–');
});

t.test('a bar is full at the limit, and needs a person from 80 %', async (t) => {
  t.match(String(limitBar({ used: 10, limit: 100 })), /class="bar free".*width="10\.0"/);
  t.match(String(limitBar({ used: 80, limit: 100 })), 'class="bar near"');
  t.match(
    String(limitBar({ used: 300, limit: 100, isRefusing: true })),
    /class="bar over" .*"300 of 100 used, refused now".*width="100\.0"/,
  );
  t.match(String(limitBar({ used: 1, limit: 100 })), '"1 of 100 used"');
  t.match(String(limitBar({ used: 0, limit: 0 })), 'class="bar over"');
});

t.test('a line leaves gaps out', async (t) => {
  t.match(String(sparkline([0, undefined, 4], 'a')), 'points="0.0,19.0 100.0,1.0"');
  t.match(String(sparkline([], 'a')), 'points=""');
});

t.test('tables are sorted and continued by the URL', async (t) => {
  const columns = [{ title: 'Name', sort: 'name', cell: (row: string) => row }];
  const shown = String(table({ caption: 'a', columns, rows: ['x'], empty: html``, url, nextCursor: 'c' }));
  t.match(shown, 'href="/users?q=a&amp;sort=name+desc"', 'from the first page');
  t.match(shown, 'href="/users?q=a&amp;cursor=c"');
  t.match(shown, 'href="/users?q=a"', 'back to the first page');
  const sorted = new URL('http://console/users?sort=name+desc');
  const again = String(table({ caption: 'a', columns, rows: ['x'], empty: html``, url: sorted }));
  t.match(again, /aria-sort="descending"><a href="\/users\?sort=name\+asc"/);
  t.match(String(table({ caption: 'a', columns, rows: [], empty: emptyState('nothing'), url })), 'nothing');
});

t.test('an argument of a command is one word of the shell', async (t) => {
  t.equal(quoteArgument('policy/shop/orders'), 'policy/shop/orders');
  t.equal(quoteArgument('user=ann,path=/search'), 'user=ann,path=/search');
  t.equal(quoteArgument("a; rm -rf 'x'"), "'a; rm -rf '\\''x'\\'''");
  t.equal(quoteArgument('~'), "'~'");
  t.equal(quoteArgument(''), "''");
});
