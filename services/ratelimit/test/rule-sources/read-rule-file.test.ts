import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readRuleFile } from '../../src/rule-sources/read-rule-file.ts';
import { makeRuleFolder } from '../support/rule-folder.ts';

t.test('a file is read as UTF-8', async (t) => {
  const folder = makeRuleFolder(t);
  folder.write('a', 'domain: ünï\n');
  t.equal(await readRuleFile(join(folder.path, 'a'), 100), 'domain: ünï\n');
});

t.test('what is no text of a bounded size is refused, and nothing waits for it', async (t) => {
  const folder = makeRuleFolder(t);
  const at = (name: string): string => join(folder.path, name);
  folder.write('large', 'x'.repeat(101));
  writeFileSync(at('binary'), Buffer.from([0xc3, 0x28]));
  mkdirSync(at('folder'));
  folder.makePipe('pipe');
  await t.rejects(readRuleFile(at('large'), 100), { message: /has 101 bytes, more than the 100 / });
  await t.rejects(readRuleFile(at('binary'), 100), { message: 'the file is not UTF-8' });
  await t.rejects(readRuleFile(at('folder'), 100), { message: 'not a regular file' });
  await t.rejects(readRuleFile(at('pipe'), 100), { message: 'not a regular file' });
  await t.rejects(readRuleFile(at('missing'), 100), { code: 'ENOENT' });
});
