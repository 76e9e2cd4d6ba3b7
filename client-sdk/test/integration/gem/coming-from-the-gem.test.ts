import { readFileSync } from 'node:fs';
import t from 'tap';

const page = readFileSync(new URL('../../../docs/coming-from-the-gem.md', import.meta.url), 'utf8');
const tests = readFileSync(new URL('./deviations.test.ts', import.meta.url), 'utf8');

t.test('every deviation from C1 to C15 names tests, and each of them exists', async (t) => {
  for (let number = 1; number <= 15; number++) {
    const row = page.split('\n').find((line) => new RegExp(`^\\| C${number} +\\|`).test(line)) ?? '';
    const names = Array.from(row.matchAll(/`(C\d+: [^`]+)`/g), ([, name = '']) => name);
    t.ok(names.length > 0, `C${number} has a test`);
    for (const name of names) t.ok(hasTest(name), name);
  }
});

t.test('every test of a deviation is named in the table', async (t) => {
  const names = Array.from(tests.matchAll(/t\.test\('(C\d+: .+?)', async/g), ([, name = '']) => name);
  t.ok(names.length >= 14);
  for (const name of names) t.ok(page.includes(`\`${name}\``), name);
});

/** C7 is a loop over content types: its name in the source is a template. */
function hasTest(name: string): boolean {
  if (tests.includes(`'${name}'`)) return true;
  const type = /^C7: (\S+) is JSON$/.exec(name)?.[1];
  return type !== undefined && tests.includes(`'${type}'`);
}
