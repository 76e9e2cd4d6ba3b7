import t from 'tap';
import { type Check, formatResults, runChecks } from '../run-checks.ts';

const check = (name: string, run: Check['run']): Check => ({ name, run });

t.test('checks run in parallel, and results keep their order', async (t) => {
  const second = Promise.withResolvers<void>();
  const results = await runChecks(
    [
      check('short', async () => {
        await second.promise;
        return { ok: true, output: 'not of interest', warnings: ['a.ts: 500 lines'] };
      }),
      check('a longer name', async () => {
        second.resolve();
        throw new Error('no such tool');
      }),
    ],
    { concurrency: 2 },
  );
  const rows = 'short          ok        1.3 s  1 warnings\na longer name  FAILED    1.3 s\n';
  const measured = results.map((result) => ({ ...result, seconds: 1.25 }));
  const text = formatResults(measured, { verbose: true });
  t.ok(text.startsWith(`${rows}\n--- a longer name\nError: no such tool\n`), text);
  t.ok(text.endsWith('\n--- short: warnings\na.ts: 500 lines\n'), text);
  t.notMatch(text, 'not of interest');
  t.notMatch(formatResults(measured), 'a.ts: 500');
});

t.test('no more checks run at a time than allowed', async (t) => {
  let running = 0;
  let most = 0;
  const counting = check('counting', async () => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
    return { ok: true, output: '' };
  });
  await runChecks(
    Array.from({ length: 5 }, () => counting),
    { concurrency: 2 },
  );
  t.equal(most, 2);
});
