import { loadYaml, loadYamlSteps } from '@tollgate/rules/load-yaml';
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
  t.test(`${shape} rules load in many steps, none of them long, to what they load to at once`, (t) => {
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
