import { loadYaml, loadYamlSteps } from '@tollgate/rules/load-yaml';
import { formatProblem } from '@tollgate/rules/problem';
import t from 'tap';

const limit = (indent: string): string => `${indent}rate_limit: { unit: hour, requests_per_unit: 1 }\n`;
const tenants = (indent: string, count: number): string =>
  Array.from(
    { length: count },
    (_, i) => `${indent}- key: tenant\n${indent}  value: t${i}\n${limit(`${indent}  `)}`,
  ).join('');

const flat = `domain: flat\ndescriptors:\n${tenants('  ', 5000)}`;
const deep = `domain: deep\ndescriptors:\n  - key: a\n    descriptors:\n      - key: b\n        descriptors:\n${tenants('          ', 5000)}`;

for (const [shape, text] of Object.entries({ flat, deep })) {
  t.test(`${shape} rules load in many short steps with the same result`, (t) => {
    const files = [{ source: 'f', text }];
    const options = { mergeDomains: false };
    const steps = loadYamlSteps(files, options);
    let count = 0;
    for (;;) {
      const step = steps.next();
      if (step.done === true) {
        t.strictSame(step.value, loadYaml(files, options));
        t.match(step.value, { ok: true, rules: { ruleCount: 5000 } });
        break;
      }
      count += 1;
    }
    // Four walks over 5,000 descriptors, 64 a step.
    t.ok(count > 300, `${count} steps`);
    t.end();
  });
}

t.test('a large file whose list is followed by more keys is loaded', async (t) => {
  const items = Array.from({ length: 60_000 }, (_, i) => `  - key: k${i}\n`).join('');
  const text = `descriptors:\n${items}domain: d\n`;
  const result = loadYaml([{ source: 'f', text }], { mergeDomains: false });
  t.equal(result.ok && result.rules.domains.get('d')?.children?.size, 60_000);
});

t.test('positions are right far into a text that is parsed in pieces', async (t) => {
  const items = Array.from({ length: 60_000 }, (_, i) => `  - key: k${i}\n`).join('');
  const text = `domain: d\ndescriptors:\n${items}  - key: k59999\n  - key: last\n    rate_limit: { unit: eon }\n`;
  const result = loadYaml([{ source: 'f', text }], { mergeDomains: false });
  t.same(result.ok ? [] : result.problems.map(formatProblem), [
    "f:60003:10: duplicate descriptor composite key 'd.k59999' (the first is at f:60002)",
    "f:60005:25: invalid rate limit unit 'eon'",
  ]);
  const broken = loadYaml([{ source: 'f', text: `${text} x: y\n` }], { mergeDomains: false });
  t.match(broken.ok ? [] : broken.problems.map(formatProblem), [/^f:60006:\d+: error loading config file: /]);
});
