import { readFileSync } from 'node:fs';
import t from 'tap';
import { folderRules } from '../../rules/folder-rules.ts';
import { readManifests } from '../../rules/manifests.ts';
import { morePerHour } from '../../story/scenario.ts';

t.test('manifests are written, edited in place, and written anew', async (t) => {
  const rules = folderRules(t.testdir({}));
  const file = rules.placeOf(morePerHour.file);
  const original = (await readManifests()).get(morePerHour.file);

  await rules.write();
  t.equal(readFileSync(file, 'utf8'), original);
  await rules.edit(morePerHour);
  t.equal(readFileSync(file, 'utf8'), original?.replace(morePerHour.from, morePerHour.to));
  await rules.write();
  t.equal(readFileSync(file, 'utf8'), original);
});
