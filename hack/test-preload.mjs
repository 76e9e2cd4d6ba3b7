// Runs first in the process of every test (.taprc), so that it has less to do.
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// tap would note each file that a test and the servers it starts load, and read the source maps of all packages to do so: a
// third of the CPU time of the tests, for `tap --changed` alone, which then would miss what a test reads without importing it.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/./';

// Hundreds of processes load the same packages: they are compiled once. Another sixth of the CPU time.
const compiled = join(import.meta.dirname, '../.tap/compiled');
process.env.NODE_COMPILE_CACHE = compiled;
enableCompileCache(compiled);

// Servers that a test starts inherit both from the environment, and need not run this file, which they may not even find.
delete process.env.NODE_OPTIONS;
