import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A package.json, as far as it has versions. */
interface Manifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** npm's lock file, version 3. Workspaces are listed by their folders. */
interface LockFile {
  readonly packages: Readonly<Record<string, Manifest>>;
}

/** A place that has the version of Tollgate in it. */
interface VersionPlace {
  readonly file: string;
  /** Where in the file: `dependencies.common`. */
  readonly field: string;
  readonly version: string;
}

/** Our packages begin with it; others have versions of their own. */
const ownPackages = '@tollgate/';

/** The version of Tollgate: that of package.json at the root. All others follow. */
export async function tollgateVersion(root: string): Promise<string> {
  const { version } = await readManifest(root);
  if (typeof version !== 'string') throw new Error('package.json has no version');
  return version;
}

/** Places with another version than package.json at the root, `file: field: version`. */
export async function versionDrift(root: string): Promise<string[]> {
  const wanted = await tollgateVersion(root);
  const places = [...(await packagePlaces(root)), ...(await chartPlaces(root))];
  return places
    .filter(({ version }) => version !== wanted)
    .map(({ file, field, version }) => `${file}: ${field}: ${version}, not ${wanted}`);
}

/**
 * Writes a version into all places.
 *
 * @throws Error when it is no version.
 */
export async function writeVersion(root: string, version: string): Promise<void> {
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) throw new Error(`${version} is no version such as 1.2.3`);
  const before = await tollgateVersion(root);
  const places = [...(await packagePlaces(root)), ...(await chartPlaces(root))];
  const files = new Set(['package.json', ...places.map(({ file }) => file)]);
  for (const file of files) {
    const text = await readFile(join(root, file), 'utf8');
    const replace = file === 'package-lock.json' ? replaceInLockFile : replaceVersion;
    await writeFile(join(root, file), replace(text, { before, version }));
  }
}

interface Change {
  readonly before: string;
  readonly version: string;
}

/** Only lines that are about us: another package may have the same version. */
function replaceVersion(text: string, { before, version }: Change): string {
  const old = before.replaceAll('.', '\\.');
  const inPackage = new RegExp(`^( +"(?:version|${ownPackages}[\\w-]+)": ")${old}(?=",?$)`, 'gm');
  const inChart = new RegExp(`^(\\s*(?:version|appVersion): )${old}$`, 'gm');
  return text.replace(inPackage, `$1${version}`).replace(inChart, `$1${version}`);
}

/** Everybody's versions stand in it: ours are those of folders outside of node_modules. */
function replaceInLockFile(text: string, change: Change): string {
  // npm's own file; its version 3 has `packages`.
  const lock = JSON.parse(text) as { version: string; packages: Record<string, unknown> };
  const packages = Object.entries(lock.packages).map(([folder, manifest]) =>
    folder.includes('node_modules/')
      ? [folder, manifest]
      : [folder, JSON.parse(replaceVersion(JSON.stringify(manifest, undefined, 2), change))],
  );
  return `${JSON.stringify({ ...lock, version: change.version, packages: Object.fromEntries(packages) }, undefined, 2)}\n`;
}

async function packagePlaces(root: string): Promise<VersionPlace[]> {
  const { packages } = await readLockFile(root);
  const own = Object.entries(packages).filter(([folder]) => !folder.includes('node_modules/'));
  const found = await Promise.all(
    own.map(async ([folder, locked]) => [
      ...placesIn('package-lock.json', locked),
      ...placesIn(join(folder, 'package.json'), await readManifest(join(root, folder))),
    ]),
  );
  return found.flat();
}

function placesIn(file: string, manifest: Manifest): VersionPlace[] {
  const { version, dependencies, devDependencies } = manifest;
  const others = Object.entries({ ...dependencies, ...devDependencies });
  return [['version', version], ...others.filter(([name]) => name.startsWith(ownPackages))].map(
    ([field, value]) => ({ file, field: String(field), version: String(value) }),
  );
}

async function chartPlaces(root: string): Promise<VersionPlace[]> {
  const charts = await readdir(join(root, 'charts'), { withFileTypes: true });
  const files = charts.filter((entry) => entry.isDirectory()).map(({ name }) => `charts/${name}/Chart.yaml`);
  const found = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(root, file), 'utf8');
      return [...text.matchAll(/^\s*(version|appVersion): *(\S+)$/gm)].map(
        ([, field = '', version = '']) => ({
          file,
          field,
          version,
        }),
      );
    }),
  );
  return found.flat();
}

async function readManifest(folder: string): Promise<Manifest> {
  // Our own file, in the form that npm requires.
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** The package-lock.json of a folder. */
export async function readLockFile(folder: string): Promise<LockFile> {
  // npm's own file; its version 3 has `packages`.
  return JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as LockFile;
}
