import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { trimPackages } from './trim-packages.ts';
import { type LockFile, readLockFile } from './workspaces.ts';

/** What the native parts of packages are chosen by, in the words of npm. */
export interface Platform {
  readonly os: string;
  readonly libc: string;
  readonly cpu: string;
}

/** What Docker calls the processors of Node. */
const processors: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/**
 * Installs the packages of an image into the folder that has its manifests, and removes what no running service reads.
 *
 * @param platformName as Docker has it, `linux/arm64`, whatever this machine is. Empty: this machine.
 * @throws Error for a platform that there are no images for, when npm fails, and when a package has no native part for the platform.
 */
export async function installPackages(folder: string, platformName: string): Promise<void> {
  const platform = readPlatform(platformName);
  const chosen = Object.entries(platform ?? {}).map(([key, value]) => `--${key}=${value}`);
  // Install scripts are not run: all native parts come compiled.
  const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['ci', ...options, ...chosen], { cwd: folder, stdio: 'inherit' });
  if (platform !== undefined) {
    const isInstalled = (path: string) => existsSync(join(folder, path));
    const missing = missingNativeParts(await readLockFile(folder), platform, isInstalled);
    if (missing.length > 0) throw new Error(`not to be had for ${platformName}: ${missing.join(', ')}`);
  }
  await trimPackages(folder);
  // It names the packages of the whole repository; node_modules/.package-lock.json names those that are here.
  await rm(join(folder, 'package-lock.json'));
}

/**
 * Reads a platform of Docker; undefined for none.
 *
 * @throws Error for one that there are no images for.
 */
export function readPlatform(name: string): Platform | undefined {
  if (name === '') return undefined;
  const [system, processor = ''] = name.split('/');
  const cpu = processors[processor];
  if (system !== 'linux' || cpu === undefined)
    throw new Error(`no images for ${name}: linux/amd64 and linux/arm64 are known`);
  return { os: 'linux', libc: 'glibc', cpu };
}

/**
 * Native parts for a platform that packages want and that are not there. npm says nothing when it could not fetch one: such parts
 * are optional to it, as each of them is for one platform.
 *
 * @param isInstalled tells whether a folder of the lock file is there
 */
export function missingNativeParts(
  { packages }: LockFile,
  platform: Platform,
  isInstalled: (folder: string) => boolean,
): readonly string[] {
  return Object.entries(packages)
    .filter(([folder]) => folder.startsWith('node_modules/') && isInstalled(folder))
    .flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies))
    .filter((name) => {
      const part = packages[`node_modules/${name}`];
      if (part?.cpu === undefined) return false;
      const fits = (['os', 'libc', 'cpu'] as const).every(
        (key) => part[key]?.includes(platform[key]) ?? true,
      );
      return fits && !isInstalled(`node_modules/${name}`);
    });
}
