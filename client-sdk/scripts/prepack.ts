// npm runs this before it packs: dist/ is made from src/, and package.json becomes the one that is
// published. postpack.ts brings the repository's package.json back.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { publishedManifest, type RepositoryManifest } from './published-manifest.ts';

const root = new URL('..', import.meta.url);
const file = (name: string) => new URL(name, root);

// An interrupted run left the published manifest.
if (existsSync(file('package.repository.json')))
  renameSync(file('package.repository.json'), file('package.json'));

rmSync(file('dist'), { recursive: true, force: true });
// The compiler of the repository; the one in this package's own node_modules is typedoc's.
const compiler = fileURLToPath(file('../node_modules/typescript/bin/tsc'));
execFileSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
  cwd: root,
  // Keeps the output of npm (`npm pack --json`) readable.
  stdio: ['ignore', process.stderr, process.stderr],
});

const text = readFileSync(file('package.json'), 'utf8');
// It is our own file, in the form that publishedManifest checks where it matters.
const published = publishedManifest(JSON.parse(text) as RepositoryManifest);
writeFileSync(file('package.repository.json'), text);
writeFileSync(file('package.json'), `${JSON.stringify(published, undefined, 2)}\n`);
