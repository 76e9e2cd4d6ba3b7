import { join } from 'node:path';
import t from 'tap';
import { staleFiles } from '../generated-files.ts';

t.test('a generated folder is compared file by file', async (t) => {
  const folder = t.testdir({ 'same.js': 'a', 'old.js': 'b', deep: { 'left-over.js': 'c' } });
  const output = `${folder}/`;
  const expected = new Map([
    [join(folder, 'same.js'), 'a'],
    [join(folder, 'old.js'), 'B'],
    [join(folder, 'new.js'), 'd'],
  ]);
  const problems = await staleFiles({ output, render: async () => expected });
  t.same(problems, [
    `${output}deep/left-over.js is not generated`,
    `${output}old.js is out of date`,
    `${output}new.js is missing`,
  ]);
});

t.test('a single generated file that is as rendered is fine', async (t) => {
  const output = join(t.testdir({ 'table.md': '| a |' }), 'table.md');
  t.same(await staleFiles({ output, render: async () => new Map([[output, '| a |']]) }), []);
});
