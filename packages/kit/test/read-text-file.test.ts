import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/text-folder';
import t from 'tap';
import { readTextFile } from '../src/text-files.ts';

t.test('a file is read as UTF-8', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a', 'domain: ünï\n');
  t.equal(await readTextFile(join(folder.path, 'a'), 100), 'domain: ünï\n');
});

t.test('what is no text of a bounded size is refused, and nothing waits for it', async (t) => {
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
