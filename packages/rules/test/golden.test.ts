import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadYaml, type RuleFile } from '@tollgate/rules/load-yaml';
import { formatProblem } from '@tollgate/rules/problem';
import t from 'tap';
import { dumpRules } from '../src/rule-set.ts';

const inputs = join(import.meta.dirname, 'testdata/in');
const outputs = join(import.meta.dirname, 'testdata/out');

/** A case is a file, or a folder of files; folders named `merged…` are loaded with merged domains. */
function readCase(name: string): RuleFile[] {
  const read = (path: string) => ({ source: path, text: readFileSync(join(inputs, path), 'utf8') });
  if (name.endsWith('.yaml')) return [read(name)];
  return readdirSync(join(inputs, name))
    .sort((a, b) => a.localeCompare(b))
    .map((file) => read(`${name}/${file}`));
}

function outcomeOf(name: string): string {
  const result = loadYaml(readCase(name), { mergeDomains: name.startsWith('merged') });
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

t.test('every case on file has an input', async (t) => {
  const cases = new Set(readdirSync(inputs).map((name) => name.replace(/\.yaml$/, '')));
  const orphans = readdirSync(outputs).filter((name) => !cases.has(name.replace(/\.txt$/, '')));
  t.same(orphans, []);
});
