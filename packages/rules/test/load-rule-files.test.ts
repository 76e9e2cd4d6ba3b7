import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatProblem } from '@tollgate/rules/problem';
import t from 'tap';
import { dumpRules } from '../src/match/rule-set.ts';
import { loadRuleFiles, loadRuleFilesInSteps, type RuleFile } from '../src/read/load-rule-files.ts';
import { loadDomain, matchOf } from './helpers/load-rules.ts';

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
    const steps = loadRuleFilesInSteps(files, options);
    let count = 0;
    for (;;) {
      const step = steps.next();
      if (step.done === true) {
        t.strictSame(step.value, loadRuleFiles(files, options));
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
  const result = loadRuleFiles([{ source: 'f', text }], { mergeDomains: false });
  t.equal(result.ok && result.rules.domains.get('d')?.children?.size, 60_000);
});

t.test('positions are right far into a text that is parsed in pieces', async (t) => {
  const items = Array.from({ length: 60_000 }, (_, i) => `  - key: k${i}\n`).join('');
  const text = `domain: d\ndescriptors:\n${items}  - key: k59999\n  - key: last\n    rate_limit: { unit: eon }\n`;
  const result = loadRuleFiles([{ source: 'f', text }], { mergeDomains: false });
  t.same(result.ok ? [] : result.problems.map(formatProblem), [
    "f:60003:10: duplicate descriptor composite key 'd.k59999' (the first is at f:60002)",
    "f:60005:25: invalid rate limit unit 'eon'",
  ]);
  const broken = loadRuleFiles([{ source: 'f', text: `${text} x: y\n` }], { mergeDomains: false });
  t.match(broken.ok ? [] : broken.problems.map(formatProblem), [/^f:60006:\d+: error loading config file: /]);
});

const metadataOf = (yaml: string) => {
  const root = loadDomain(
    `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: day }\n    metadata: ${yaml}\n`,
  );
  return matchOf(root, ['k', ''])?.rule.metadata;
};

t.test('metadata has the types of YAML 1.1', async (t) => {
  t.same(
    metadataOf('{ a: 1, b: 1.5, c: yes, d: off, e: ~, f: "1", g: text, h: 0x10, i: 010, j: 2020-01-01 }'),
    {
      a: 1,
      b: 1.5,
      c: true,
      d: false,
      e: null,
      f: '1',
      g: 'text',
      h: 16,
      i: 8,
      j: '2020-01-01',
    },
  );
});

t.test('metadata supports nesting, repeated keys and merges', async (t) => {
  t.same(metadataOf('{ a: [1, { b: [] }], c: 1, c: 2, <<: { c: 3, d: 4 } }'), {
    a: [1, { b: [] }],
    c: 2,
    d: 4,
  });
});

t.test('metadata accepts any key without changing a prototype', async (t) => {
  const metadata = metadataOf('{ __proto__: { polluted: true }, constructor: 1, domain: [2] }');
  t.same(Object.keys(metadata ?? {}), ['__proto__', 'constructor', 'domain']);
  t.equal(Object.getPrototypeOf(metadata), Object.prototype);
  t.notOk('polluted' in {});
});

t.test('null metadata is ignored', async (t) => {
  t.equal(metadataOf('~'), undefined);
});

const inputs = join(import.meta.dirname, 'testdata/in');
const outputs = join(import.meta.dirname, 'testdata/out');

/**
 * A case is a file, or a folder of files; folders named `merged…` are loaded with merged domains.
 */
function readCase(name: string): RuleFile[] {
  const read = (path: string) => ({ source: path, text: readFileSync(join(inputs, path), 'utf8') });
  if (name.endsWith('.yaml')) return [read(name)];
  return readdirSync(join(inputs, name))
    .sort((a, b) => a.localeCompare(b))
    .map((file) => read(`${name}/${file}`));
}

function outcomeOf(name: string): string {
  const result = loadRuleFiles(readCase(name), { mergeDomains: name.startsWith('merged') });
  if (!result.ok) return result.problems.map((problem) => `${formatProblem(problem)}\n`).join('');
  const warnings = result.warnings.map((warning) => `warning: ${formatProblem(warning)}\n`);
  return [...dumpRules(result.rules).map((line) => `${line}\n`), ...warnings].join('');
}

for (const name of readdirSync(inputs)) {
  t.test(`${name} gives the outcome on file`, async (t) => {
    const file = join(outputs, `${name.replace(/\.yaml$/, '')}.txt`);
    const outcome = outcomeOf(name);
    if (process.env.UPDATE_GOLDEN === '1') {
      mkdirSync(outputs, { recursive: true });
      writeFileSync(file, outcome);
    }
    t.ok(existsSync(file), 'the case has an outcome on file; write it with UPDATE_GOLDEN=1 and read it');
    t.equal(outcome, readFileSync(file, 'utf8'));
  });
}

t.test('months get no note when the limiter counts those of the calendar', async (t) => {
  const result = loadRuleFiles(readCase('warnings-months.yaml'), {
    mergeDomains: false,
    calendarMonths: true,
  });
  t.match(result, { ok: true, warnings: [] });
});

t.test('every golden file has an input', async (t) => {
  const cases = new Set(readdirSync(inputs).map((name) => name.replace(/\.yaml$/, '')));
  const orphans = readdirSync(outputs).filter((name) => !cases.has(name.replace(/\.txt$/, '')));
  t.same(orphans, []);
});
