// A process of tests: runs the test files that it is given one after the other, each as a subtest
// with the name of the file, and prints TAP with the CPU time of each.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

// tap would make all arguments part of the names of its folders.
const byUrl = new Map(process.argv.splice(2).map((path) => [pathToFileURL(resolve(path)).href, path]));
const current = Symbol.for('tollgate.file-test');
const clockTicksPerSecond = 100;

/**
 * By this package tap tracks every promise of the process, to find the test of an uncaught error.
 * Here only one test runs at a time.
 */
const domains = 'async-hook-domain';
const withoutDomains =
  'export class Domain { constructor(onerror) { this.onerror = onerror; } destroy() {} }';

// A test file imports its own subtest as `tap`, so that its hooks, options and teardowns end with
// it.
registerHooks({
  resolve(specifier, context, next) {
    if (specifier === domains) return { url: `tap:${domains}`, shortCircuit: true };
    const path = specifier === 'tap' ? byUrl.get(context.parentURL ?? '') : undefined;
    return path === undefined ? next(specifier, context) : { url: `tap:${path}`, shortCircuit: true };
  },
  load(url, context, next) {
    if (!url.startsWith('tap:')) return next(url, context);
    const ownSubtest = `export default globalThis[Symbol.for('${current.description}')];`;
    const source = url === `tap:${domains}` ? withoutDomains : ownSubtest;
    return { format: 'module', source, shortCircuit: true };
  },
});

// CI checks the same cases in each run, so that a failure is due to a change. Elsewhere they
// differ, and fast-check prints the seed of a failure.
const usesFastCheck = (path: string) => readFileSync(path, 'utf8').includes("'fast-check'");
if (process.env.CI === 'true' && [...byUrl.values()].some(usesFastCheck)) {
  const { configureGlobal } = await import('fast-check');
  configureGlobal({ seed: 1 });
}

const { default: t } = await import('tap');
process.on('uncaughtException', (error, origin) => {
  innermost(t).threw(Object.assign(error, { tapCaught: origin }));
});
for (const [url, path] of byUrl) {
  const startSeconds = cpuSeconds();
  await t.test(path, async (subtest) => {
    Object.assign(globalThis, { [current]: subtest });
    await import(url);
  });
  t.comment(`cpu=${(cpuSeconds() - startSeconds).toFixed(2)} s`);
}

/** A test of tap, as far as errors that are not caught concern it. */
interface RunningTest {
  readonly activeSubtests?: Iterable<RunningTest>;
  threw(error: Error): void;
}

function innermost(test: RunningTest): RunningTest {
  const [active] = test.activeSubtests ?? [];
  return active === undefined ? test : innermost(active);
}

/** CPU time of this process and of the programs that it has started and that have ended. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + childCpuSeconds();
}

/** Linux only, elsewhere 0. */
function childCpuSeconds(): number {
  if (process.platform !== 'linux') return 0;
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  // Fields 16 and 17 of proc_pid_stat(5); the first one left here is field 3.
  return (Number(fields[13]) + Number(fields[14])) / clockTicksPerSecond;
}
