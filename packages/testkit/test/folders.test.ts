import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../src/folders.ts';

void t.test('a temporary folder is removed with its content', (t) => {
  const folder = temporaryFolder();
  writeFiles(folder.path, 1);

  folder.remove();

  t.notOk(existsSync(folder.path));
  t.doesNotThrow(() => folder.remove());
  t.end();
});

void t.test(
  'a temporary folder is removed whole while a program still removes its own files in it',
  async (t) => {
    const folder = temporaryFolder();
    writeFiles(folder.path, 500);
    writeFileSync(join(folder.path, 'last'), '');
    const program = spawn('/bin/sh', ['-c', 'echo; exec rm -rf data'], {
      cwd: folder.path,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const closed = once(program, 'close');
    await once(program.stdout, 'data');

    folder.remove();

    t.notOk(existsSync(folder.path));
    await closed;
  },
);

void t.test('many temporary folders are removed at exit, without a warning of too many listeners', (t) => {
  const program = `
    import { temporaryFolder } from ${JSON.stringify(import.meta.resolve('../src/folders.ts'))};
    const folders = Array.from({ length: 20 }, temporaryFolder);
    folders[0].remove();
    console.log(folders.map(({ path }) => path).join('\\n'));`;

  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });

  t.equal(stderr, '');
  const paths = stdout.trim().split('\n');
  t.equal(paths.length, 20);
  t.same(paths.filter(existsSync), []);
  t.end();
});

function writeFiles(folder: string, count: number): void {
  for (let file = 0; file < count; file++) {
    const path = join(folder, 'data', String(file % 40));
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, String(file)), '');
  }
}
