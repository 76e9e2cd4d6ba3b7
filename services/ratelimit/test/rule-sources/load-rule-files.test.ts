import { join } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/text-folder';
import t from 'tap';
import { loadRuleFiles } from '../../src/rule-sources/load-rule-files.ts';
import { rulesText } from '../support/rule-folder.ts';

t.test('the event loop goes on turning while a large file loads', async (t) => {
  const folder = makeTextFolder(t);
  const keys = Array.from({ length: 20_000 }, (_, i) => `key-${i}`);
  folder.write('config/large.yaml', rulesText('large', 1, keys));
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  const load = await loadRuleFiles({
    directory: join(folder.path, 'config'),
    labelRoot: folder.path,
    ignoreDotFiles: false,
    mergeDomains: false,
  });
  clearImmediate(next);
  t.match(load, { ok: true, rules: { ruleCount: 20_000 } });
  // 100 ms and more of work in slices of 5 ms.
  t.ok(turns >= 10, `${turns} turns`);
});
