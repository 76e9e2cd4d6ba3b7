import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { readTextFile, readTextFiles } from '../src/text-files.ts';

t.test('a file is read as UTF-8', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a', 'domain: ünï\n');
  t.equal(await readTextFile(join(folder.path, 'a'), 100), 'domain: ünï\n');
});

t.test('files that are too large, not UTF-8 or not regular are refused without blocking', async (t) => {
  const folder = makeTextFolder(t);
  const at = (name: string): string => join(folder.path, name);
  folder.write('large', 'x'.repeat(101));
  writeFileSync(at('binary'), Buffer.from([0xc3, 0x28]));
  mkdirSync(at('folder'));
  folder.makePipe('pipe');
  await t.rejects(readTextFile(at('large'), 100), { message: /has 101 bytes, more than the 100 / });
  await t.rejects(readTextFile(at('large'), 100, 'left of 200'), {
    message: 'the file has 101 bytes, more than the 100 left of 200',
  });
  await t.rejects(readTextFile(at('binary'), 100), { message: 'the file is not UTF-8' });
  await t.rejects(readTextFile(at('folder'), 100), { message: 'not a regular file' });
  await t.rejects(readTextFile(at('pipe'), 100), { message: 'not a regular file' });
  await t.rejects(readTextFile(at('missing'), 100), { code: 'ENOENT' });
});

t.test('files that change together are read consistently', async (t) => {
  const folder = makeTextFolder(t);
  for (const version of ['old', 'new']) {
    for (let i = 0; i < 20; i += 1) folder.write(`${version}/${i}.yaml`, version);
  }
  const seen: string[] = [];
  // Each time at another moment of the reading.
  for (let turns = 0; turns < 120; turns += 2) {
    folder.swapLink('current', 'old');
    const directory = join(folder.path, 'current');
    const reading = readTextFiles({ directory, labelRoot: folder.path, ignoreDotFiles: false });
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
    folder.swapLink('current', 'new');
    const { files, problems } = await reading;
    t.strictSame(problems, []);
    t.equal(files.length, 20);
    seen.push([...new Set(files.map(({ text }) => text))].join(' and '));
  }
  t.strictSame(
    seen.filter((text) => text !== 'old' && text !== 'new'),
    [],
  );
  t.ok(seen.includes('new'), 'the swap came while files were read');
});

t.test('only files with the given extensions are read', async (t) => {
  const folder = makeTextFolder(t);
  for (const name of ['a.yaml', 'sub/b.json', 'README.md', 'yaml']) folder.write(name, name);
  folder.swapLink('link.yaml', 'README.md');
  const { files } = await readTextFiles({
    directory: folder.path,
    labelRoot: folder.path,
    ignoreDotFiles: true,
    extensions: ['.yaml', '.json'],
  });
  t.strictSame(
    files.map(({ source }) => source),
    ['a.yaml', 'link.yaml', 'sub/b.json'],
  );
});

t.test('a file beyond the total limit is reported with the limit', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a', 'four');
  folder.write('large', '');
  // Without its bytes on the disk.
  truncateSync(join(folder.path, 'large'), 2 ** 28);
  const { files, problems } = await readTextFiles({
    directory: folder.path,
    labelRoot: folder.path,
    ignoreDotFiles: true,
  });
  t.equal(files.length, 1);
  t.strictSame(problems, [
    {
      source: 'large',
      message:
        'the file has 268435456 bytes, more than the 268435452 left of the 268435456 allowed for all files of the folder together',
    },
  ]);
});
