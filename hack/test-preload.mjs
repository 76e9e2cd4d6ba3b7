// Runs first in the process of every test (.taprc), so that it has less to do.
import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// tap would note each file that a test and the servers it starts load, and read the source maps of
// all packages to do so: a third of the CPU time of the tests, for `tap --changed` alone, which
// then would miss what a test reads without importing it.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/./';

// Hundreds of processes load the same packages: they are compiled once. Another sixth of the CPU
// time.
const compiled = join(import.meta.dirname, '../.tap/compiled');
process.env.NODE_COMPILE_CACHE = compiled;
enableCompileCache(compiled);

// No test needs its files after it. In memory they cost a tenth of what they cost on a disk:
// databases, etcd, images.
const memory = '/dev/shm';
if (process.env.TMPDIR === undefined && takesFiles(memory)) process.env.TMPDIR = memory;

// Servers that a test starts inherit all of that from the environment, and need not run this file,
// which they may not even find.
delete process.env.NODE_OPTIONS;

// CI checks the same cases in each run, so that a failure is due to a change. Elsewhere they
// differ, and fast-check prints the seed of a failure.
if (process.env.CI === 'true' && readFileSync(process.argv[1], 'utf8').includes("'fast-check'")) {
  const { configureGlobal } = await import('fast-check');
  configureGlobal({ seed: 1 });
}

/**
 * Whether Linux has a file system in memory there, large enough for concurrent tests, from which
 * programs may run.
 */
function takesFiles(folder) {
  const leastBytes = 4 * 1024 ** 3;
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    const [, options = 'noexec'] =
      new RegExp(`^\\S+ ${folder} tmpfs (\\S+)`, 'm').exec(readFileSync('/proc/mounts', 'utf8')) ?? [];
    return (
      Math.min(bavail * bsize, process.availableMemory()) > leastBytes &&
      !options.split(',').includes('noexec')
    );
  } catch {
    return false;
  }
}
