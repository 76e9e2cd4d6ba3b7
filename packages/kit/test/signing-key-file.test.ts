import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceKeyFile } from '@tollgate/kit/signing-key-file';
import t from 'tap';

t.test('a file of keys is replaced, and only its owner can read it', async (t) => {
  const folder = t.testdir({ 'keys.json': 'before' });
  const path = join(folder, 'keys.json');
  await replaceKeyFile(path, 'after');
  t.equal(await readFile(path, 'utf8'), 'after');
  t.equal((await stat(path)).mode & 0o777, 0o600);
  t.strictSame(await readdir(folder), ['keys.json']);
});

t.test('a file that cannot be replaced leaves no copy of the keys', async (t) => {
  const folder = t.testdir();
  const path = join(folder, 'keys.json');
  // A rename onto a folder fails, as onto a mount.
  await mkdir(path);
  await t.rejects(replaceKeyFile(path, 'keys'), { message: /The keys are unchanged.*mounted as a whole/ });
  t.strictSame(await readdir(folder), ['keys.json']);
  await t.rejects(replaceKeyFile(join(folder, 'no', 'keys.json'), 'keys'), { message: /ENOENT/ });
});
