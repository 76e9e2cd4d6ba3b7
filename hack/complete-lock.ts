// Run after `npm install` when `npm ci` says that packages are missing from the lock file: npm
// leaves out the binaries for other platforms when the registry does not carry them, and then
// refuses its own lock file. This adds them.
import { readFile, writeFile } from 'node:fs/promises';
import { posix } from 'node:path';

/**
 * The part of package-lock.json (version 3) that is used here; everything else is passed through.
 */
export interface LockFile {
  packages: Record<string, LockedPackage>;
}

export interface LockedPackage {
  version?: string;
  /** Only development dependencies lead here. */
  dev?: boolean;
  optionalDependencies?: Record<string, string>;
  [field: string]: unknown;
}

/** An optional dependency that the lock file should list and does not. */
export interface MissingPackage {
  name: string;
  version: string;
  /** Path of the package that wants it, such as `node_modules/@biomejs/biome`. */
  wantedBy: string;
  /** As of the package that wants it. */
  dev: boolean;
}

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];
const processors = ['arm64', 'arm', 'armv7', 'x64', 'ia32', 'ppc64', 'riscv64', 's390x'];

/** Optional dependencies that no entry of the lock file satisfies. */
export function missingPackages({ packages }: LockFile): MissingPackage[] {
  return Object.entries(packages).flatMap(([wantedBy, { optionalDependencies = {}, dev = false }]) =>
    Object.entries(optionalDependencies)
      .filter(([name]) => !isListed(packages, wantedBy, name))
      .map(([name, version]) => ({ name, version, wantedBy, dev })),
  );
}

/**
 * Is the package there for its dependent: in its own node_modules, or in that of a folder above?
 */
function isListed(packages: LockFile['packages'], dependent: string, name: string): boolean {
  for (let folder = dependent; ; folder = posix.dirname(folder)) {
    const at = folder === '.' ? '' : folder;
    if (posix.join(at, 'node_modules', name) in packages) return true;
    if (at === '') return false;
  }
}

/**
 * The entry of a package with the binary for one platform, which its name says:
 * `@oxc-parser/binding-linux-arm-musleabihf`. It has no integrity because the package is not
 * available here. npm skips it on every other platform.
 *
 * @throws Error when the name tells no platform or the version is a range; such a package npm must
 * find itself.
 */
export function platformEntry({ name, version, wantedBy, dev }: MissingPackage): LockedPackage {
  const words = name.slice(name.indexOf('/') + 1).split('-');
  const os = systems.find((system) => words.includes(system));
  const cpu = processors.find((processor) => words.includes(processor));
  if (os === undefined || cpu === undefined || !/^\d/.test(version)) {
    throw new Error(`${wantedBy} wants ${name}@${version}, which the registry does not have`);
  }
  const libc = os === 'linux' ? parseLibc(name) : undefined;
  return {
    version,
    cpu: [cpu === 'armv7' ? 'arm' : cpu],
    ...(dev ? { dev } : {}),
    ...(libc === undefined ? {} : { libc: [libc] }),
    optional: true,
    os: [os],
  };
}

function parseLibc(name: string): 'musl' | 'glibc' | undefined {
  if (name.includes('musl')) return 'musl';
  return name.includes('gnu') ? 'glibc' : undefined;
}

if (import.meta.main) {
  const file = 'package-lock.json';
  // npm wrote it; its version 3 has this shape.
  const lock = JSON.parse(await readFile(file, 'utf8')) as LockFile;
  const missing = missingPackages(lock);
  for (const wanted of missing) lock.packages[`node_modules/${wanted.name}`] = platformEntry(wanted);
  const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
  await writeFile(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
  process.stdout.write(`${file}: ${missing.length} packages added\n`);
}
