import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import t from 'tap';
import { trimPackages } from '../trim-packages.ts';

t.test('what only compilers, people and tests read goes, what runs stays', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const kept = [
    'node_modules/a/index.js',
    'node_modules/a/LICENSE.md',
    'node_modules/a/dist/test/runs.js',
    'node_modules/a/node_modules/b/index.cjs',
    'node_modules/@scope/c/data.json',
    'packages/kit/node_modules/d/index.mjs',
    'packages/kit/package.json',
  ];
  const removed = [
    'node_modules/a/index.d.ts',
    'node_modules/a/index.js.map',
    'node_modules/a/README.md',
    'node_modules/a/test/a.test.js',
    'node_modules/a/node_modules/b/docs/b.html',
    'node_modules/@scope/c/src/c.ts',
    'node_modules/@types/e/index.d.mts',
    'node_modules/.bin/a',
    'packages/kit/node_modules/d/index.d.cts',
  ];
  for (const file of [...kept, ...removed]) {
    await mkdir(dirname(join(folder.path, file)), { recursive: true });
    await writeFile(join(folder.path, file), '');
  }
  await symlink('../packages/kit', join(folder.path, 'node_modules/kit'));

  await trimPackages(folder.path);

  const entries = await readdir(folder.path, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.path.length + 1));
  t.strictSame(new Set(files), new Set(kept));
  t.ok(
    entries.some((entry) => entry.isSymbolicLink() && entry.name === 'kit'),
    'links to workspaces stay',
  );
  t.notOk(
    entries.some(({ name }) => name === 'e'),
    'nor is there an empty folder',
  );
});
