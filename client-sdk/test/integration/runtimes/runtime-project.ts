import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import manifest from '../../../package.json' with { type: 'json' };
import { packPackage } from '../package/pack-package.ts';
import type { runNode, runWeb } from './programs.ts';

/** A project that has the packed package installed, with a program for every way to load it. */
export interface RuntimeProject {
  readonly folder: string;
  remove(): void;
}

/** Input of the programs. */
export interface ProgramInputs {
  readonly web: Parameters<typeof runWeb>[1];
  readonly node: Parameters<typeof runNode>[1];
}

/** Stands before the report in what a program prints. */
export const reportMark = 'REPORT ';

/** Subpaths that need modules of Node. */
const nodeOnly = ['./node', './kubernetes'];

const subpaths = Object.keys(manifest.exports);
const webSubpaths = subpaths.filter((subpath) => !nodeOnly.includes(subpath));
const specifierOf = (subpath: string) => subpath.replace('.', manifest.name);

/**
 * Makes the project in a temporary folder, the package unpacked as npm does it: `main.mjs` and
 * `main.cjs` run all steps (with the argument `web` those of the web) and print the report;
 * `page.html` with `page.mjs`, and `page-worker.js`, run the web's and post it to `/report/<who>`;
 * `workerd.capnp` has a test that prints it. What ends in `.js` is a bundle. `typed.ts` has right
 * types, and one that is expected to be wrong.
 */
export async function makeRuntimeProject(inputs: ProgramInputs): Promise<RuntimeProject> {
  const packed = await packPackage();
  const folder = join(packed.workFolder, 'project');
  const installed = join(folder, 'node_modules', ...manifest.name.split('/'));
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', packed.tarball, '--strip-components=1', '-C', installed]);

  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const bundle = (options: BuildOptions) =>
    build({ bundle: true, absWorkingDir: folder, logLevel: 'error', ...options });
  write('package.json', JSON.stringify({ private: true, dependencies: { [manifest.name]: '*' } }));
  for (const [format, outfile] of [
    ['esm', 'programs.mjs'],
    ['cjs', 'programs.cjs'],
  ] as const)
    await bundle({ entryPoints: [join(import.meta.dirname, 'programs.ts')], format, outfile });

  const web = `runWeb(sdk, ${JSON.stringify(inputs.web)})`;
  const node = `runNode(sdk, ${JSON.stringify(inputs.node)})`;
  const all = `Promise.all([${web}, process.argv[2] === 'web' ? {} : ${node}])`;
  const print = `(reports) => console.log('${reportMark}' + JSON.stringify(Object.assign({}, ...reports)))`;
  const post = (who: string) =>
    `(report) => fetch('/report/${who}', { method: 'POST', body: JSON.stringify(report) })`;
  write('main.mjs', `${importing(subpaths)}${all}.then(${print});`);
  write('main.cjs', `${requiring(subpaths)}${all}.then(${print});`);
  write('page.mjs', `${importing(webSubpaths)}${web}.then(${post('page')});`);
  write('page.html', page(importMap()));
  write('page-worker.mjs', `${importing(webSubpaths)}${web}.then(${post('worker')});`);
  await bundle({ entryPoints: ['page-worker.mjs'], format: 'esm', outfile: 'page-worker.js' });
  write(
    'workerd.mjs',
    `${importing(webSubpaths)}export default { test: () => Promise.all([${web}]).then(${print}) };`,
  );
  const conditions = ['workerd', 'worker', 'browser'];
  await bundle({ entryPoints: ['workerd.mjs'], format: 'esm', outfile: 'workerd.js', conditions });
  write('workerd.capnp', workerdConfig);
  write('typed.ts', typed);
  return { folder, remove: packed.remove };
}

function importing(wanted: readonly string[]): string {
  const imports = wanted.map((subpath, i) => `import * as m${i} from '${specifierOf(subpath)}';\n`);
  const sdk = wanted.map((subpath, i) => `'${subpath}': m${i}`);
  return `import { runNode, runWeb } from './programs.mjs';\n${imports.join('')}const sdk = { ${sdk.join(', ')} };\n`;
}

function requiring(wanted: readonly string[]): string {
  const sdk = wanted.map((subpath) => `'${subpath}': require('${specifierOf(subpath)}')`);
  return `const { runNode, runWeb } = require('./programs.cjs');\nconst sdk = { ${sdk.join(', ')} };\n`;
}

/** Where the package's modules are, below the project. */
function importMap(): Record<string, string> {
  const pathOf = (source: string) =>
    `/node_modules/${manifest.name}/${source.replace('./src/', 'dist/').replace(/\.ts$/, '.js')}`;
  return Object.fromEntries(
    Object.entries(manifest.exports).map(([subpath, source]) => [specifierOf(subpath), pathOf(source)]),
  );
}

/** A module worker, too, which import maps do not reach: that one is a bundle. */
function page(imports: Record<string, string>): string {
  return `<!doctype html>
<title>client-sdk</title>
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module" src="/page.mjs"></script>
<script type="module">new Worker('/page-worker.js', { type: 'module' });</script>
`;
}

/** The network of workers leads to public addresses only, by default. */
const workerdConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "workerd.js", esModule = embed "workerd.js")],
      compatibilityDate = "2026-11-01",
      globalOutbound = "machine",
    )),
    (name = "machine", network = (allow = ["private", "local"])),
  ],
);
`;

const typed = `
import { type AccessToken, Client } from '${manifest.name}';
import { nodeTransport } from '${manifest.name}/node';
import { TokenManager } from '${manifest.name}/token-manager';
const client = new Client({ clientId: 'id', site: 'https://as.example', fetch: nodeTransport() });
// @ts-expect-error without types it would be right
new Client({ timeoutMs: '10 s' });
const token: AccessToken = await client.clientCredentials.getToken();
await using manager = new TokenManager({ client, token });
export const response: Response = await manager.fetch('https://as.example/api');
`;
