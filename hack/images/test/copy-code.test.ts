import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import t from 'tap';
import { copyCode } from '../copy-code.ts';

t.test('code is copied without declarations, readable for everybody', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const [root, target] = [join(folder.path, 'root'), join(folder.path, 'target')];
  await mkdir(join(root, 'services/a/src/domain'), { recursive: true });
  await mkdir(join(root, 'services/a/test'));
  await mkdir(target);
  for (const file of ['src/main.ts', 'src/domain/rule.ts', 'src/types.d.ts', 'test/main.test.ts'])
    await writeFile(join(root, 'services/a', file), '', { mode: 0o600 });
  await chmod(join(root, 'services/a/src/domain'), 0o700);

  await copyCode(root, [{ folder: 'services/a', manifest: {} }], target);

  const entries = await readdir(target, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  t.strictSame(new Set(files), new Set(['main.ts', 'rule.ts']));
  const modeOf = async (path: string) => (await stat(join(target, 'services/a', path))).mode & 0o777;
  t.equal(await modeOf('src/main.ts'), 0o644);
  t.equal(await modeOf('src/domain'), 0o755);
});
