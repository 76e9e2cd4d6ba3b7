import { execFile } from 'node:child_process';
import { glob, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { findBinary, programIsMissing } from '@tollgate/testkit/processes';
import t from 'tap';

t.test(
  'actionlint finds no problems in the workflows',
  { skip: programIsMissing('actionlint') },
  async (t) => {
    const lint = promisify(execFile)(findBinary('actionlint'), ['-no-color']);
    // execFile of Node adds the output to its errors.
    const problems = await lint.then(
      () => '',
      (error: { stdout?: string }) => error.stdout ?? String(error),
    );
    t.equal(problems, '');
  },
);

t.test('every action is pinned by commit, with its version beside it', async (t) => {
  const uses: string[] = [];
  for await (const path of glob('.github/workflows/*.yaml'))
    for (const [, action = ''] of (await readFile(path, 'utf8')).matchAll(/^\s*-? ?uses: (.*)$/gm))
      uses.push(action);
  t.ok(uses.length > 8);
  for (const action of uses) t.match(action, /^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});
