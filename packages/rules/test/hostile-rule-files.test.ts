import { formatProblem } from '@tollgate/rules/problem';
import t from 'tap';
import { loadRuleFiles } from '../src/read/load-rule-files.ts';

function problemsOf(text: string): string[] {
  const result = loadRuleFiles([{ source: 'f', text }], { mergeDomains: false });
  return result.ok ? [] : result.problems.map(formatProblem);
}

/** Ten levels, each ten times the one before. */
function bomb(item: (name: string) => string, list: (items: string) => string, first: string): string {
  const levels = [`a0: &a0 ${first}`];
  for (let i = 1; i <= 10; i++)
    levels.push(`a${i}: &a${i} ${list(Array.from({ length: 10 }, () => item(`*a${i - 1}`)).join(', '))}`);
  return `${levels.join('\n')}\n`;
}

t.test('nested aliases that expand to billions of descriptors are refused', async (t) => {
  const levels = ['{ key: k0 }'];
  for (let i = 1; i <= 10; i++)
    levels.push(`{ key: k${i}, descriptors: [${'*a, '.replace('a', `a${i - 1}`).repeat(10)}] }`);
  const items = levels.map((level, i) => `  - &a${i} ${level}\n`).join('');
  const problems = problemsOf(`domain: d\ndescriptors:\n${items}`);
  t.match(problems[0], /^f:\d+:\d+: error loading config file: aliases stand for more than 1000000 nodes$/);
});

t.test('nested aliases that expand to billions of metadata values are refused', async (t) => {
  const metadata = bomb(
    (name) => name,
    (items) => `[${items}]`,
    '[x]',
  ).replace(/^/gm, '      ');
  const problems = problemsOf(`domain: d\ndescriptors:\n  - key: k\n    metadata:\n${metadata}`);
  t.match(problems, [/^f:\d+:\d+: error loading config file: aliases stand for more than 1000000 nodes$/]);
});

t.test('nested merges that expand to billions of mappings are refused', async (t) => {
  const merges = ['&m0 { key: k }'];
  for (let i = 1; i <= 10; i++) merges.push(`&m${i} { <<: [${`*m${i - 1}, `.repeat(10)}] }`);
  const problems = problemsOf(`domain: d\ndescriptors:\n${merges.map((merge) => `  - ${merge}\n`).join('')}`);
  t.match(problems[0], /aliases stand for more than 1000000 nodes/);
});

t.test('aliases that nest deeper than the limit of the text are refused', async (t) => {
  const items = ['  - &a0 { key: k }\n'];
  for (let i = 1; i <= 5000; i++) items.push(`  - &a${i} { key: k${i}, descriptors: [*a${i - 1}] }\n`);
  t.match(problemsOf(`domain: d\ndescriptors:\n${items.join('')}`), [/aliases nest deeper than 100 levels/]);
});

t.test('an alias inside its own anchor is refused', async (t) => {
  t.same(problemsOf('domain: d\ndescriptors: &all\n  - key: a\n    descriptors: *all\n'), [
    'f:4:18: error loading config file: alias "all" is inside its own anchor',
  ]);
});

t.test('an unknown alias is refused', async (t) => {
  t.same(problemsOf('domain: *none\n'), ['f:1:9: error loading config file: unidentified alias "none"']);
});

t.test('nesting deeper than 100 collections is refused', async (t) => {
  t.match(problemsOf(`domain: d\ndescriptors: ${'['.repeat(200_000)}`), [
    /error loading config file: nesting exceeded/,
  ]);
  t.match(problemsOf('- '.repeat(100_000)), [/error loading config file: nesting exceeded/]);
});

t.test('a NUL byte is refused with its position', async (t) => {
  t.same(problemsOf('domain: d\ndesc\0riptors: []\n'), [
    'f:2:5: error loading config file: null byte is not allowed in input',
  ]);
});

t.test('a tag of another type than text, numbers, lists and mappings is refused', async (t) => {
  t.match(problemsOf('domain: !!binary aGk=\n'), [
    'f:1:9: error loading config file: tag !!binary is not supported',
  ]);
  t.match(problemsOf('domain: !custom d\n'), [
    'f:1:9: error loading config file: tag !custom is not supported',
  ]);
});

t.test('a file with more tokens than fit in memory is refused before parsing', async (t) => {
  t.same(problemsOf(`domain: d\ndescriptors: [${','.repeat(4_100_000)}]`), [
    'f: error loading config file: the file has more than 4000000 YAML tokens; split it into several files',
  ]);
});

t.test('a file that is too long is refused before parsing', async (t) => {
  t.match(problemsOf(`#${'x'.repeat(64 * 1024 * 1024)}`), [
    /^f: error loading config file: the file has 67108865 characters/,
  ]);
});

t.test('problems are limited to 1000', async (t) => {
  const problems = problemsOf(`domain: d\ndescriptors:\n${'  - { keyy: a, value: 1.5 }\n'.repeat(20_000)}`);
  t.equal(problems.length, 1000);
});

t.test('20,000 duplicates of one descriptor are reported in linear time', async (t) => {
  const problems = problemsOf(`domain: d\ndescriptors:\n${'  - key: a\n'.repeat(20_000)}`);
  t.equal(problems.length, 1000);
  t.equal(problems[0], "f:4:10: duplicate descriptor composite key 'd.a' (the first is at f:3)");
});

t.test('a broken file does not hide the problems of the others', async (t) => {
  const files = [
    { source: 'a', text: 'domain: "' },
    { source: 'b', text: 'domain: ""' },
    { source: 'c', text: 'domain: d\nx: 1' },
  ];
  const result = loadRuleFiles(files, { mergeDomains: false });
  t.match(result.ok ? [] : result.problems.map(formatProblem), [
    /^a:1:\d+: error loading config file: /,
    /^b:1:9: config file cannot have empty domain/,
    /^c:2:1: config error, unknown key 'x'/,
  ]);
});

t.test('no files give no rules', async (t) => {
  t.match(loadRuleFiles([], { mergeDomains: false }), { ok: true, rules: { ruleCount: 0 } });
});
