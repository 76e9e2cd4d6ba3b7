import t from 'tap';
import { type Check, formatResults, runChecks } from '../run-checks.ts';

const passing = (name: string): Check => ({
  name,
  run: async () => ({ ok: true, output: 'not of interest' }),
});

t.test('results keep the order of the checks', async (t) => {
  let finishFirst = () => {};
  const first: Check = {
    name: 'first',
    run: () =>
      new Promise((resolve) => {
        finishFirst = () => resolve({ ok: true, output: '' });
      }),
  };
  const second: Check = {
    name: 'second',
    run: async () => {
      finishFirst();
      return { ok: true, output: '' };
    },
  };
  const results = await runChecks([first, second], { concurrency: 2 });
  t.same(
    results.map(({ name, ok }) => [name, ok]),
    [
      ['first', true],
      ['second', true],
    ],
  );
});

t.test('no more checks run at a time than allowed', async (t) => {
  let running = 0;
  let most = 0;
  const counting: Check = {
    name: 'counting',
    run: async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      return { ok: true, output: '' };
    },
  };
  await runChecks(
    Array.from({ length: 5 }, () => counting),
    { concurrency: 2 },
  );
  t.equal(most, 2);
});

t.test('a check that throws has failed, and its error is the output', async (t) => {
  const throwing: Check = { name: 'broken', run: () => Promise.reject(new Error('no such tool')) };
  const [result] = await runChecks([throwing], { concurrency: 1 });
  t.match(result, { ok: false, output: /no such tool/ });
});

t.test('warnings are counted, and listed when verbose', async (t) => {
  const warning: Check = {
    name: 'sizes',
    run: async () => ({ ok: true, output: '', warnings: ['a.ts: 500 lines', 'b.ts: 3 lines'] }),
  };
  const results = await runChecks([warning], { concurrency: 1 });
  t.match(formatResults(results), /^sizes {2}ok .* s {2}2 warnings\n$/);
  t.match(formatResults(results, { verbose: true }), '--- sizes: warnings\na.ts: 500 lines\nb.ts: 3 lines\n');
});

t.test('the table has every check, and output only of failed ones', async (t) => {
  const failing: Check = {
    name: 'a longer name',
    run: async () => ({ ok: false, output: 'line 3 is wrong\n' }),
  };
  const results = await runChecks([passing('short'), failing], { concurrency: 1 });
  const text = formatResults(results.map((result) => ({ ...result, seconds: 1.25 })));
  t.equal(
    text,
    [
      'short          ok        1.3 s',
      'a longer name  FAILED    1.3 s',
      '',
      '--- a longer name',
      'line 3 is wrong',
      '',
    ].join('\n'),
  );
});
