import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import manifest from '../../../package.json' with { type: 'json' };
import { packPackage, run } from './pack-package.ts';

const packed = await packPackage();
t.teardown(packed.remove);
const binary = (name: string) =>
  fileURLToPath(new URL(`../../../../node_modules/.bin/${name}`, import.meta.url));
const specifiers = Object.keys(manifest.exports).map((subpath) => subpath.replace('.', manifest.name));

t.test('the tarball contains the build and the documents, and nothing else', async (t) => {
  const unexpected = packed.files.filter(
    (path) =>
      !/^(?:dist\/.+\.(?:js|d\.ts)|docs\/[^/]+\.md|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(
        path,
      ),
  );
  t.same(unexpected, []);
  t.ok(packed.files.includes('README.md'));
  t.ok(packed.files.includes('LICENSE'));
  t.ok(packed.files.includes('dist/index.js'));
});

t.test('packing restores the package.json of the repository', async (t) => {
  const after = readFileSync(join(packed.folder, 'package.json'), 'utf8');
  t.equal(after, readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
});

t.test('publint finds no problem in the tarball', async (t) => {
  const { stdout } = await run(binary('publint'), ['run', packed.tarball, '--strict'], packed.workFolder);
  t.match(stdout, /All good!/);
});

t.test('types resolve for every subpath under node16, from ESM and CJS, and under bundlers', async (t) => {
  // node10 knows no `exports`. CJS reaches the ES modules by require(), which Node does from 22.12
  // on.
  const rules = ['--profile', 'node16', '--ignore-rules', 'cjs-resolves-to-esm', '--no-definitely-typed'];
  const entries = ['--exclude-entrypoints', 'package.json'];
  const { stdout } = await run(
    binary('attw'),
    [packed.tarball, ...rules, ...entries, '--format', 'json'],
    packed.workFolder,
  );
  // attw's own report.
  const report = JSON.parse(stdout) as { analysis: { entrypoints: Record<string, unknown> } };
  t.same(new Set(Object.keys(report.analysis.entrypoints)), new Set(Object.keys(manifest.exports)));
});

t.test('in an empty project', async (t) => {
  const project = join(packed.workFolder, 'project');
  mkdirSync(project);
  const write = (name: string, text: string) => writeFileSync(join(project, name), text);
  write('package.json', JSON.stringify({ name: 'empty', private: true, type: 'commonjs' }));
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', packed.tarball], project);

  await t.test('it has no dependencies', async (t) => {
    const { stdout } = await run('npm', ['ls', '--all', '--parseable'], project);
    t.equal(stdout.trim().split('\n').length, 2, 'the project and this package');
  });

  await t.test('ESM imports every subpath', async (t) => {
    write(
      'all.mjs',
      `${specifiers.map((name, i) => `import * as m${i} from '${name}';`).join('\n')}
       console.log([${specifiers.map((_, i) => `Object.keys(m${i}).length > 0`).join()}].every(Boolean));`,
    );
    const { stdout, stderr } = await run(process.execPath, ['all.mjs'], project);
    t.equal(stdout.trim(), 'true');
    t.equal(stderr, '', 'and nothing warns');
  });

  await t.test('CJS requires every subpath, and gets the very classes that ESM gets', async (t) => {
    write(
      'all.cjs',
      `const modules = ${JSON.stringify(specifiers)}.map((name) => require(name));
       const { Client } = require('${manifest.name}');
       import('${manifest.name}').then((esm) =>
         console.log(modules.every((m) => Object.keys(m).length > 0), esm.Client === Client));`,
    );
    const { stdout } = await run(process.execPath, ['all.cjs'], project);
    t.equal(stdout.trim(), 'true true');
  });

  const programs = {
    'an ES module, with the types of the web alone': ['program.mts', consumer],
    'every subpath, with the types of ES2022 and the DOM': [
      'subpaths.mts',
      specifiers.map((name, i) => `export * as m${i} from '${name}';`).join('\n'),
      { target: 'es2022', lib: ['es2022', 'dom'] },
    ],
    'a CommonJS program': ['program.cts', consumer],
    'what the types promise': ['promises.mts', readText('../types/type-assertions.ts')],
    'the code of the README': ['readme.mts', readmeProgram(readText('../../../README.md'))],
  } satisfies Record<string, [file: string, text: string, changes?: object]>;
  for (const [what, [file, text, changes = {}]] of Object.entries(programs)) {
    await t.test(`TypeScript checks ${what}`, async (t) => {
      write(file, text);
      const compilerOptions = { ...webCompilerOptions, ...changes };
      write('tsconfig.json', JSON.stringify({ compilerOptions, files: [file] }));
      const { stdout } = await run(binary('tsc'), ['-p', '.'], project);
      t.equal(stdout, '');
    });
  }
});

const readText = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');

/** As strict as a user may be: library checks on, and no types of Node. */
const webCompilerOptions = {
  target: 'es2024',
  lib: ['es2024', 'dom', 'dom.iterable', 'esnext.disposable'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  types: [],
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
};

const consumer = `
import { type AccessToken, Client, OAuthError } from '${manifest.name}';
import { calculateCodeChallenge, generateCodeVerifier } from '${manifest.name}/pkce';

export async function main(): Promise<string> {
  const client = new Client({ clientId: 'id', clientSecret: 'secret', site: 'https://as.example' });
  try {
    const token: AccessToken = await client.clientCredentials.getToken({ scope: 'read' });
    const response: Response = await token.fetch('https://as.example/me');
    return (await response.text()) + (await calculateCodeChallenge(generateCodeVerifier()));
  } catch (error) {
    if (error instanceof OAuthError) return error.code ?? 'no code';
    throw error;
  }
}
`;

/** All TypeScript of a page as one module: the imports first, every block a function of its own. */
function readmeProgram(page: string): string {
  const blocks = Array.from(page.matchAll(/```ts\n([\s\S]*?)```/g), ([, code = '']) => code.split('\n'));
  const isImport = (line: string) => line.startsWith('import ');
  const imported = new Map<string, Set<string>>();
  for (const line of blocks.flat().filter(isImport)) {
    const [, names = '', module = ''] = /^import \{ (.+) \} from '(.+)';$/.exec(line) ?? [];
    imported.set(module, new Set([...(imported.get(module) ?? []), ...names.split(', ')]));
  }
  return [
    'import type { AccessToken, AuthorizationTransaction, Client } from "@tollgate/oauth2-client";',
    ...Array.from(imported, ([module, names]) => `import { ${[...names].join(', ')} } from '${module}';`),
    // Names in the prose of the page.
    'declare const client: Client, token: AccessToken, transaction: AuthorizationTransaction;',
    'declare const clientSecret: string, callback: Request, pemOrJwkOrCryptoKey: string;',
    'declare const store: { get(name: string): Promise<string | undefined>; set(name: string, value: string): Promise<void> };',
    ...blocks.map(
      (lines, i) => `export async function block${i}() {\n${lines.filter((l) => !isImport(l)).join('\n')}\n}`,
    ),
  ].join('\n');
}
