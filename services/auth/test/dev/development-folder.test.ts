import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { createDevelopmentFolder } from '../../src/dev/folder.ts';

const program = join(import.meta.dirname, '../../src/main.ts');
/** Root may write everywhere, so forbidden folders are tried as another user. */
const unprivileged: { uid?: number; gid?: number } =
  process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/** What the server says that is started on a folder, and ends at once. */
async function outputOf(t: Test, folder: string): Promise<string> {
  const child = spawn(process.execPath, [program, 'serve'], {
    ...unprivileged,
    cwd: '/',
    env: { PATH: process.env.PATH, PORT: '0', SVC_MODE: 'development', SVC_DEVELOPMENT_FOLDER: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [out, error, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  t.equal(code, 1, folder);
  t.equal(out, '');
  return error;
}

t.test('an unusable folder is a one-line error', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  chmodSync(folder.path, 0o755);
  const file = join(folder.path, 'file');
  const locked = join(folder.path, 'locked');
  const link = join(folder.path, 'link');
  symlinkSync(join(folder.path, 'nothing'), link);
  writeFileSync(file, '');
  mkdirSync(locked);
  chownSync(locked, unprivileged.uid ?? statSync(locked).uid, unprivileged.gid ?? statSync(locked).gid);
  chmodSync(locked, 0o500);
  for (const [path, reason] of [
    [file, `${file} is not a folder`],
    [join(file, 'below'), `${file} is not a folder`],
    [link, `${link} is not a folder`],
    [locked, `no permission to write ${locked}`],
    [join(locked, 'below/it'), `no permission to write ${join(locked, 'below')}`],
    ['/proc/tollgate/below', 'no folders can be created in /proc'],
  ] as const)
    t.equal(
      await outputOf(t, path),
      `cannot use the development folder ${path}: ${reason}. Set SVC_DEVELOPMENT_FOLDER to a writable folder\n`,
    );
});

t.test('folders are created recursively and concurrently', async (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const deep = join(folder.path, 'a/b/c');
  await Promise.all([createDevelopmentFolder(deep), createDevelopmentFolder(deep)]);
  await createDevelopmentFolder(deep);
  t.ok(existsSync(deep));
});
