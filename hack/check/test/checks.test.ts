import { join } from 'node:path';
import t from 'tap';
import { findStaleFiles } from '../files.ts';
import { findCycles, findStrayTestFolders } from '../floors.ts';
import { findForbiddenTexts } from '../forbidden-texts.ts';
import { findUnverifiedPackages } from '../lock-file.ts';
import { findOpenApiProblems } from '../open-api.ts';
import { findFragments } from '../sentences.ts';
import { findNumberGaps, findUnusualSizes } from '../sizes.ts';

/** Joined here, so that this file does not contain what the check looks for. */
const host = ['registry', 'npmjs', 'org'].join('.');
const machinePath = ['', 'home', 'ada', 'src'].join('/');

t.test('host names of registries are reported with line and reason', async (t) => {
  t.same(findForbiddenTexts('docs/a.md', `fine\nsee https://${host}/x`), [
    `docs/a.md:2: names a package registry; the machine decides where packages come from: registry.${'npmjs'}`,
  ]);
});

t.test('absolute paths of one machine are reported, other paths are not', async (t) => {
  t.match(findForbiddenTexts('a.ts', `const x = '${machinePath}';`), [/absolute path of one machine/]);
  t.same(
    findForbiddenTexts(
      'a.ts',
      `open('/srv/runtime_data'); fetch('/api/home/x', './work/a', 'https://x.org/root/a')`,
    ),
    [],
  );
});

t.test('addresses in a lock file are reported, links between workspaces are not', async (t) => {
  const line = (address: string) => `      "resolved": "${address}",`;
  t.same(findForbiddenTexts('package-lock.json', line('packages/kit')), []);
  t.match(findForbiddenTexts('package-lock.json', line('https://example.org/a.tgz')), [/lock file/]);
  t.same(findForbiddenTexts('docs/a.md', line('https://example.org/a.tgz')), []);
});

t.test('comments that begin in the middle of a sentence are reported', async (t) => {
  const reported = (text: string) => findForbiddenTexts('a.ts', text).length;
  for (const text of [
    `/** ${'Of'} the user. */`,
    `/**\n * ${'The'} same for others.\n */`,
    'f(); // fine\n// What is left.',
    '  // Those of users come first.',
  ])
    t.equal(reported(text), 1, text);
  for (const text of [
    '/** Offers more. */',
    '// It is a sentence\n// Of two lines.',
    '/**\n * Depends on\n * What follows.\n */',
    "const s = 'Of';",
  ])
    t.equal(reported(text), 0, text);
});

t.test('operations of an OpenAPI document that no client can be generated for are reported', async (t) => {
  const operation = { summary: 'Reads', tags: ['A'], responses: { 200: { description: 'Success.' } } };
  const document = {
    openapi: '3.1.0',
    info: { title: 'A', version: '1', license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: 'https://a.test' }],
    tags: [{ name: 'A', description: 'All.' }],
    paths: { '/a': { get: operation } },
  };
  const folder = t.testdir({ 'a.json': JSON.stringify(document) });
  const problems = await findOpenApiProblems(join(folder, 'a.json'));
  const rules = problems.map((problem) => /\(([a-z0-9-]+)\)$/i.exec(problem)?.[1]);
  t.same(rules.sort(), ['operation-4xx-response', 'operation-operationId', 'security-defined']);
});

t.test('private keys are reported', async (t) => {
  t.match(findForbiddenTexts('a.pem', `-----BEGIN ${'EC PRIVATE'} KEY-----`), [/private key/]);
});

t.test('packages that npm would install unverified are reported, workspaces are not', async (t) => {
  const packages = {
    '': {},
    'packages/kit': {},
    'node_modules/@tollgate/kit': { link: true },
    'node_modules/hash': { integrity: 'sha512-AAAA' },
    'node_modules/hash/node_modules/old': { integrity: 'sha1-AAAA' },
    'node_modules/hash-darwin-arm64': { optional: true },
    'node_modules/@biomejs/cli-darwin-arm64': { optional: true, dev: true },
  };
  t.same(findUnverifiedPackages(JSON.stringify({ packages })), [
    'package-lock.json: node_modules/hash/node_modules/old has no integrity',
    'package-lock.json: node_modules/hash-darwin-arm64 has no integrity',
  ]);
});

t.test('helm upgrade that keeps values takes the defaults of the new chart', async (t) => {
  t.match(findForbiddenTexts('docs/a.md', 'helm upgrade x y --reuse-values'), [/--reset-then-reuse-values/]);
  t.same(findForbiddenTexts('docs/a.md', 'helm upgrade x y --reset-then-reuse-values'), []);
});

t.test('a generated folder is compared file by file', async (t) => {
  const folder = t.testdir({ 'same.js': 'a', 'old.js': 'b', deep: { 'left-over.js': 'c' } });
  const output = `${folder}/`;
  const expected = new Map([
    [join(folder, 'same.js'), 'a'],
    [join(folder, 'old.js'), 'B'],
    [join(folder, 'new.js'), 'd'],
  ]);
  const problems = await findStaleFiles({ output, render: async () => expected });
  t.same(problems, [
    `${output}deep/left-over.js is not generated`,
    `${output}old.js is out of date`,
    `${output}new.js is missing`,
  ]);
});

t.test('a single generated file that is up to date passes', async (t) => {
  const output = join(t.testdir({ 'table.md': '| a |' }), 'table.md');
  t.same(await findStaleFiles({ output, render: async () => new Map([[output, '| a |']]) }), []);
});

t.test('unusual sizes of files and folders are reported', async (t) => {
  const lines = (count: number) => 'x\n'.repeat(count);
  const sources = new Map([
    ['a/src/main.ts', lines(3)],
    ['a/src/short.ts', lines(29)],
    ['a/src/fine.ts', lines(400)],
    ['a/src/rules/long.ts', lines(401)],
    ['a/src/rules/two.ts', lines(30)],
  ]);
  t.same(findUnusualSizes(sources), [
    'a/src/short.ts: 29 lines, fewer than 30',
    'a/src/rules/long.ts: 401 lines, more than 400',
    'a/src/rules/: 2 files, fewer than 3',
  ]);
});

t.test('decisions are numbered without gaps or duplicates', async (t) => {
  const decisions = (...numbers: string[]) => numbers.map((number) => `docs/decisions/${number}-x.md`);
  t.same(findNumberGaps([...decisions('0001', '0002'), 'docs/decisions/README.md', 'docs/a.md']), []);
  t.match(findNumberGaps(decisions('0001', '0003')), [/look at 0003/]);
  t.match(findNumberGaps(decisions('0001', '0002', '0002')), [/look at 0002/]);
});

t.test('banned words, names and long comments are reported in code and prose', async (t) => {
  const word = ['some', 'body'].join('');
  t.match(findForbiddenTexts('docs/a.md', `${word} calls`), [/^docs\/a.md:1: not plain English/]);
  t.match(findForbiddenTexts('a.ts', `t.test('${word} calls')`), [/not plain English/]);
  t.same(findForbiddenTexts('a.json', word), [], 'data is exempt');
  t.match(findForbiddenTexts('a.ts', ['type List', 'Deps = {};'].join('')), [/not a standard term/]);
  const long = `// ${'x'.repeat(100)}`;
  t.match(findForbiddenTexts('a.ts', long), [/more than 100 columns/]);
  t.same(findForbiddenTexts('a.ts', `// https://example.org/${'x'.repeat(100)}`), []);
  t.same(findForbiddenTexts('a.ts', `const a = '${'x'.repeat(100)}';`), []);
});

t.test('folders of a service that depend on each other are reported with the imports', async (t) => {
  const sources = new Map([
    ['services/a/src/app.ts', "import { b } from './users/store.ts';"],
    ['services/a/src/users/store.ts', "import type { Mail } from '../mail/send.ts';"],
    ['services/a/src/mail/send.ts', "const { keys } = await import('../keys/keys.ts');"],
    ['services/a/src/mail/queue.ts', "import { send } from './send.ts';"],
    ['services/a/src/keys/keys.ts', "import { find } from '../users/find.ts';"],
    ['services/b/src/keys/keys.ts', "import { find } from '../users/find.ts';"],
  ]);
  t.same(findCycles(sources), [
    'services/a/src: users imports mail imports keys imports users: services/a/src/users/store.ts, services/a/src/mail/send.ts, services/a/src/keys/keys.ts',
  ]);
  sources.delete('services/a/src/mail/send.ts');
  t.same(findCycles(sources), []);
});

t.test('imports between folders count in every form', async (t) => {
  for (const statement of [
    "import {\n  type A,\n  b,\n} from '../users/store.ts';",
    "import type { A } from\n  '../users/store.ts';",
    "export * from '../users/store.ts';",
    "import '../users/store.ts';",
    "const { b } = await import(\n  '../users/store.ts'\n);",
  ]) {
    const sources = new Map([
      ['services/a/src/users/store.ts', "import type { Mail } from '../mail/mail.ts';"],
      ['services/a/src/mail/mail.ts', statement],
    ]);
    t.match(findCycles(sources), [/^services\/a\/src: users imports mail imports users: /], statement);
  }
});

t.test('comments without a subject or a verb are reported with their line', async (t) => {
  const report = (comment: string) => findFragments('a/src/a.ts', `const a = 1;\n${comment}\nconst b = 2;\n`);
  for (const sentence of [
    'In base32.',
    'By kind and language, which differ.',
    'As {@link list}, without the total: whether another page follows.',
    'For ID tokens that clients present, if the sign-in does not use any.',
    'Per sign-in; sixteen times what others use.',
    'Before a request is sent.',
    'Until the body is read, unless the limit depends on it.',
    'Of domains only.',
    'What a request needs.',
  ])
    for (const comment of [
      `/** ${sentence} */`,
      `// ${sentence}`,
      `/**\n * ${sentence}\n *\n * @see RFC 1\n */`,
    ])
      t.match(report(comment), [/^a\/src\/a\.ts:2: a comment that is not a sentence: /], comment);
  for (const sentence of [
    'In lists and maps, nil is valid for every verb.',
    'Without a listener an error of the socket would end the process.',
    'After a panic the server recovers.',
    'After a failover the clock may be behind.',
    'In one transaction: a failed sign-in does not spend the code.',
    'As in Go, `:6379` is this machine.',
    'With TLS, requests refer to the socket inside the tunnel.',
    'Keys by id.',
  ])
    t.same(report(`/** ${sentence} */`), [], sentence);
  t.same(report('// A sentence continues\n// by the next line.'), []);
});

t.test('a feature that takes the whole context of a service is reported', async (t) => {
  const store = "import type { UserStore } from '../users/store.ts';";
  const inApp = new Map([
    ['services/a/src/app/context.ts', store],
    ['services/a/src/users/save.ts', "import type { Context } from '../app/context.ts';"],
  ]);
  t.match(findCycles(inApp), [/^services\/a\/src: app imports users imports app: /]);
  const beside = new Map([
    ['services/a/src/context.ts', "import type { UserStore } from './users/store.ts';"],
    ['services/a/src/users/save.ts', "import type { Context } from '../context.ts';"],
  ]);
  t.match(findCycles(beside), [/^services\/a\/src: context.ts imports users imports context.ts: /]);
  const own = new Map([
    ['services/a/src/app/context.ts', store],
    ['services/a/src/context.ts', "import type { Settings } from './config/settings.ts';"],
    ['services/a/src/users/save.ts', "import type { BaseContext } from '../context.ts';"],
  ]);
  t.same(findCycles(own), []);
});

t.test('folders of tests without a source of their name are reported', async (t) => {
  const paths = [
    'services/a/src/users/store.ts',
    'services/a/src/users/import/lines.ts',
    'services/a/src/servers.ts',
  ];
  const test = (path: string) => findStrayTestFolders([...paths, `services/a/test/${path}`]);
  t.same(test('db/store.test.ts'), ['services/a/test/db/: no services/a/src/db']);
  t.same(test('users/data/x.txt'), ['services/a/test/users/data/: no services/a/src/users/data']);
  t.same(test('import/lines.test.ts'), ['services/a/test/import/: no services/a/src/import']);
  for (const path of [
    'users/store.test.ts',
    'users/import/lines.test.ts',
    'servers/tls.test.ts',
    'metrics.test.ts',
  ])
    t.same(test(path), []);
  for (const path of ['integration/attacks/x.test.ts', 'helpers/rows.ts', 'users/testdata/in/x.yaml'])
    t.same(test(path), []);
  t.same(findStrayTestFolders(['packages/a/src/users/store.ts', 'client-sdk/test/users/store.test.ts']), [
    'client-sdk/test/users/: no client-sdk/src/users',
  ]);
});
