import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { trimPackages } from './trim-packages.ts';

/** What Docker calls the processors of Node. */
const processors: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/**
 * Installs the packages of an image into the folder that has its manifests, and removes what no running service reads.
 *
 * @param platform as Docker names it, `linux/arm64`: native parts are chosen for it, whatever this machine is. Empty: this machine.
 * @throws Error for a platform that there are no images for, and when npm fails.
 */
export async function installPackages(folder: string, platform: string): Promise<void> {
  // Install scripts are not run: all native parts come compiled.
  const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['ci', ...options, ...platformOptions(platform)], { cwd: folder, stdio: 'inherit' });
  await trimPackages(folder);
  // It names the packages of the whole repository; node_modules/.package-lock.json names those that are here.
  await rm(join(folder, 'package-lock.json'));
}

/** Options of npm for a platform of Docker. */
export function platformOptions(platform: string): string[] {
  if (platform === '') return [];
  const [system, processor = ''] = platform.split('/');
  const cpu = processors[processor];
  if (system !== 'linux' || cpu === undefined)
    throw new Error(`no images for ${platform}: linux/amd64 and linux/arm64 are known`);
  return ['--os=linux', '--libc=glibc', `--cpu=${cpu}`];
}
