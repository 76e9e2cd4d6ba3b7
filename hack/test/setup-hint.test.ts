import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';

const hint = join(import.meta.dirname, '../setup-hint.cjs');

function run(file: string): { status: number | null; stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8' });
  return { status, stderr };
}

t.test('a checkout without packages is told to run make setup', (t) => {
  const checkout = temporaryFolder();
  t.teardown(checkout.remove);
  mkdirSync(join(checkout.path, 'hack'));
  const copy = join(checkout.path, 'hack/setup-hint.cjs');
  copyFileSync(hint, copy);
  t.match(run(copy), { status: 1, stderr: /^Nothing is installed yet\. Run `make setup`/ });
  t.end();
});

t.test('one that is set up is told nothing', (t) => {
  t.same(run(hint), { status: 0, stderr: '' });
  t.end();
});
