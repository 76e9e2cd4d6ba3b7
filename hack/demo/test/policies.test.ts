import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { editText, PolicyFolder, readManifests } from '../policies.ts';
import { morePerHour } from '../scenario.ts';

const edit = { file: 'a.yaml', from: 'x: 1', to: 'x: 2' };

t.test('an edit changes the one line that it names', async (t) => {
  t.equal(editText('x: 1\ny: 10\n', edit), 'x: 2\ny: 10\n');
});

t.test('an edit of a missing or ambiguous line is an error', async (t) => {
  const wrong = { message: 'a.yaml is to have exactly one line that ends in "x: 1"' };
  t.throws(() => editText('x: 1\nx: 1\n', edit), wrong);
  t.throws(() => editText('y: 1\n', edit), wrong);
});

t.test('the edit of the scenario finds its line in the manifests of the demo', async (t) => {
  const text = (await readManifests()).get(morePerHour.file) ?? '';
  t.ok(editText(text, morePerHour).includes(`${morePerHour.to}\n`));
});

t.test('manifests are written, edited in place, and rewritten', async (t) => {
  const policies = new PolicyFolder(t.testdir({}));
  const file = join(policies.path, morePerHour.file);
  const original = (await readManifests()).get(morePerHour.file);

  await policies.write();
  t.equal(readFileSync(file, 'utf8'), original);
  await policies.edit(morePerHour);
  t.equal(readFileSync(file, 'utf8'), original?.replace(morePerHour.from, morePerHour.to));
  await policies.write();
  t.equal(readFileSync(file, 'utf8'), original);
});
