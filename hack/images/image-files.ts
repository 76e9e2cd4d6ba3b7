// The files of an image. The Dockerfile runs this before anything is installed, so it imports only
// Node's own modules.
//   node hack/images/image-files.ts packages <folder> <service> [platform]
//   node hack/images/image-files.ts code <links> <target>
//   node hack/images/image-files.ts strip <folder>
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, join } from 'node:path';

interface Manifest {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  /** Platforms of a package with native code; all of them when missing. */
  readonly os?: readonly string[];
  readonly libc?: readonly string[];
  readonly cpu?: readonly string[];
  readonly [field: string]: unknown;
}

/** npm's lock file, version 3. Workspaces are listed by their folders. */
interface LockFile {
  readonly packages: Readonly<Record<string, Manifest>>;
}

/** Docker's names of processors, and Node's. */
const processors: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** Declarations, sources and pages: Node does not run TypeScript in packages. Licences stay. */
const needless = /\.(?:[cm]?ts|tsx|flow|map)$|^(?!licen[cs]e|notice|copying).*\.(?:md|markdown)$/i;

/**
 * Installs what one service and the command `tollgate` need in production. The folder has the lock
 * file and the package.json of every workspace; others are removed.
 *
 * @param platform as Docker names it, `linux/arm64`; this machine's when empty
 * @throws Error for a platform without images, when npm fails, and when a package has no native
 * part for the platform.
 */
export function installPackages(folder: string, service: string, platform = ''): void {
  const target = parsePlatform(platform);
  const lock = removeDevelopment(folder);
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const chosen = Object.entries(target ?? {}).map(([key, value]) => `--${key}=${value}`);
  const workspaces = [`--workspace=services/${service}`, '--workspace=cli'];
  const args = ['ci', ...workspaces, ...options, ...chosen];
  execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
  const isInstalled = (path: string) => existsSync(join(folder, path));
  const missing = target === undefined ? [] : missingNativeParts(lock, target, isInstalled);
  if (missing.length > 0) throw new Error(`not available for ${platform}: ${missing.join(', ')}`);
  const used = workspaceFolders(join(folder, 'node_modules/@tollgate'));
  for (const workspace of Object.keys(lock.packages).filter(isWorkspace))
    if (!used.includes(workspace)) rmSync(join(folder, workspace), { recursive: true });
  for (const path of ['package-lock.json', 'node_modules/.bin'])
    rmSync(join(folder, path), { recursive: true, force: true });
  removeNeedless(folder);
}

/**
 * Copies the code of the workspaces that `links` (node_modules/@tollgate) names from the checkout
 * in the current folder.
 */
function copyCode(links: string, target: string): void {
  for (const workspace of workspaceFolders(links))
    for (const folder of ['src', 'generated'].map((name) => join(workspace, name)))
      if (existsSync(folder)) {
        const isCode = (path: string) => !path.endsWith('.d.ts');
        cpSync(folder, join(target, folder), { recursive: true, filter: isCode });
      }
}

/**
 * Strips the types once, so that each process needs neither the time nor the 22 MB for it. Lines
 * and columns stay. Node resolves links before it looks at the extension: with `main.ts` a link to
 * `main.js`, imports and commands stay as they are.
 */
function stripTypes(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !path.endsWith('.ts')) continue;
    const script = path.replace(/\.ts$/, '.js');
    writeFileSync(script, stripTypeScriptTypes(readFileSync(path, 'utf8')));
    rmSync(path);
    symlinkSync(basename(script), path);
  }
}

/** `undefined` for the platform of this machine. */
function parsePlatform(name: string): { os: string; libc: string; cpu: string } | undefined {
  if (name === '') return undefined;
  const [os, processor = ''] = name.split('/');
  const cpu = processors[processor];
  if (os !== 'linux' || cpu === undefined)
    throw new Error(`no images for ${name}: use linux/amd64 or linux/arm64`);
  return { os, libc: 'glibc', cpu };
}

/** `npm ci` compares every package.json with the lock file, so both lose the same entries. */
function removeDevelopment(folder: string): LockFile {
  const edit = (file: string, change: (manifest: Manifest) => object) => {
    // npm's own files.
    const manifest = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Manifest;
    const changed = change(manifest);
    writeFileSync(join(folder, file), JSON.stringify(changed, undefined, 2));
    return changed;
  };
  const lock = edit('package-lock.json', (text) => {
    const packages = Object.entries((text as unknown as LockFile).packages);
    const edited = packages.map(([path, manifest]) => [
      path,
      path === '' || isWorkspace(path) ? forProduction(manifest) : manifest,
    ]);
    return { ...text, packages: Object.fromEntries(edited) };
  }) as LockFile;
  for (const workspace of ['', ...Object.keys(lock.packages).filter(isWorkspace)])
    edit(join(workspace, 'package.json'), forProduction);
  return lock;
}

function forProduction(manifest: Manifest): Manifest {
  const { devDependencies: _development, scripts: _scripts, ...rest } = manifest;
  return rest;
}

function isWorkspace(path: string): boolean {
  return path !== '' && !path.includes('node_modules/');
}

/** npm treats native parts as optional, so it succeeds without one that it could not fetch. */
export function missingNativeParts(
  { packages }: LockFile,
  platform: { os: string; libc: string; cpu: string },
  isInstalled: (path: string) => boolean,
): string[] {
  return Object.entries(packages)
    .filter(([path]) => path.startsWith('node_modules/') && isInstalled(path))
    .flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies))
    .filter((name) => {
      const part = packages[`node_modules/${name}`];
      if (part?.cpu === undefined || isInstalled(`node_modules/${name}`)) return false;
      return (['os', 'libc', 'cpu'] as const).every((key) => part[key]?.includes(platform[key]) ?? true);
    });
}

/** Workspaces by the links that npm makes: `../../packages/kit`. */
function workspaceFolders(links: string): string[] {
  return readdirSync(links).map((name) => readlinkSync(join(links, name)).replace(/^(?:\.\.\/)+/, ''));
}

/** Links to workspaces stay, and are not followed. */
function removeNeedless(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) removeNeedless(path);
    else if (entry.isFile() && needless.test(entry.name)) rmSync(path);
  }
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

if (import.meta.main) {
  // The image's user is not the one who builds it.
  process.umask(0o022);
  const [command, folder = '', ...args] = process.argv.slice(2);
  if (command === 'packages') installPackages(folder, ...(args as [string, string?]));
  else if (command === 'strip') stripTypes(folder);
  else copyCode(folder, args[0] ?? '');
}
