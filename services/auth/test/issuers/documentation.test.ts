import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseRouteRules } from '@tollgate/policies/routes-file/parse';
import { issuerKeys } from '@tollgate/policies/routes-file/read-issuers';
import t from 'tap';
import { describeRuleWarnings } from '../../src/ext-authz/rules-file.ts';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/other-issuers.md'), 'utf8');

t.test('the route rules of the page are valid, without warnings', (t) => {
  const blocks = [
    ...page.matchAll(/^```yaml\n(issuers:.*?)^```$/gms),
    ...page.matchAll(/<<'YAML'\n(.*?)^YAML$/gms),
  ];
  t.equal(blocks.length, 3);
  for (const [, text = ''] of blocks) {
    const parsed = parseRouteRules(text);
    t.match(parsed, { ok: true }, JSON.stringify(!parsed.ok && parsed.problems));
    if (parsed.ok) t.same(describeRuleWarnings(parsed.rules, { canLimit: false }), []);
  }
  t.end();
});

t.test('the page has a row for every key of an issuer', (t) => {
  const [, table = ''] = page.split('| Key ');
  const rows = [
    ...table
      .split('\n\n', 1)
      .join('')
      .matchAll(/^\| `(\w+)` /gm),
  ].map(([, key]) => key);
  t.same(new Set(rows), new Set(issuerKeys));
  t.end();
});
