import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';

/** A file that starts one of the programs that `hack/setup.sh go-tools` compiles. */
const startsGoTool = /findBinary\('(?:actionlint|ghz|helm|h2spec|kube[\w-]*)'\)|find\('kube-apiserver'\)/;

/** The specifier of an `import` or `export … from` statement, or of `import()` with a constant. */
const importPattern =
  /^(?:import\s+|(?:import|export)\b[^'"`;]*\bfrom\s+)'([^'\n]+)'|\bimport\('([^'\n]+)'\)/gm;

const patterns = [
  'packages/*/test/**/*.test.ts',
  'services/*/test/**/*.test.ts',
  'cli/test/**/*.test.ts',
  'client-sdk/test/**/*.test.ts',
  'proto/test/**/*.test.ts',
  'hack/**/*.test.ts',
];

/** All test files of the repository at `root`, sorted. */
export function allTestFiles(root: string): string[] {
  return globSync(patterns, { cwd: root, exclude: ['**/node_modules/**'] }).sort();
}

/**
 * Files of a workspace share processes: most of the CPU time of a short file is that of loading a
 * service and starting a PostgreSQL. Few enough that all processes end at about the same time.
 */
const filesPerProcess = 8;

/** Files that change what others of their process rely on, or measure the process. */
const needsOwnProcess =
  /process\.env\.\w+ =|delete process\.env|globalThis|process\.memoryUsage|opentelemetry/;

/** Files that start servers for a minute: one after the other they would end last. */
const isLong = /^hack\/(?:charts|e2e|images|release)\//;

/** Groups test files into processes, in the order in which to start them. */
export function planProcesses(root: string, files: readonly string[]): string[][] {
  const isAlone = (file: string) =>
    isLong.test(file) || needsOwnProcess.test(readFileSync(join(root, file), 'utf8'));
  const { alone = [], shared = [] } = Object.groupBy(files, (file) => (isAlone(file) ? 'alone' : 'shared'));
  const groups = Object.values(Object.groupBy(shared, workspaceOf)).flatMap((group = []) => {
    const count = Math.ceil(group.length / filesPerProcess);
    const size = Math.ceil(group.length / count);
    return Array.from({ length: count }, (_, index) => group.slice(index * size, (index + 1) * size));
  });
  return [...alone.map((file) => [file]), ...groups.reverse()];
}

/** Parts that share what they load: `services/auth`, `client-sdk`, `hack`. */
function workspaceOf(file: string): string {
  return /^(?:packages|services)\/[^/]+|^[^/]+/.exec(file)?.[0] ?? '';
}

/** Test files that the user names, themselves or by a folder. */
export function namedTestFiles(
  root: string,
  names: readonly string[],
): { ok: true; files: string[] } | { ok: false; problem: string } {
  const files: string[] = [];
  for (const name of names) {
    const path = posix.normalize(name).replace(/\/$/, '');
    const stats = statSync(join(root, path), { throwIfNoEntry: false });
    if (stats === undefined) return { ok: false, problem: `tests: ${name} does not exist` };
    const found = stats.isDirectory()
      ? allTestFiles(root).filter((file) => file.startsWith(`${path}/`))
      : [path];
    if (found.length === 0) return { ok: false, problem: `tests: ${name} has no test files` };
    files.push(...found);
  }
  return { ok: true, files };
}

/**
 * Splits test files by whether they need the programs in Go: those from which an import leads to a
 * file that starts one of them. Paths are relative to `root`.
 */
export function splitByGoTools(
  root: string,
  files: readonly string[],
): { without: string[]; with: string[] } {
  const known = new Map<string, boolean>();
  const needs = (path: string): boolean => {
    const answer = known.get(path);
    if (answer !== undefined) return answer;
    // Ends cycles of imports.
    known.set(path, false);
    const source = readFileSync(join(root, path), 'utf8');
    const result =
      startsGoTool.test(source) ||
      [...source.matchAll(importPattern)].some(([, named = '', dynamic]) => {
        const target = resolveImport(path, dynamic ?? named);
        return target !== undefined && existsSync(join(root, target)) && needs(target);
      });
    known.set(path, result);
    return result;
  };
  const groups = Object.groupBy(files, (path) => (needs(posix.normalize(path)) ? 'with' : 'without'));
  return { without: groups.without ?? [], with: groups.with ?? [] };
}

/** The file of an import of this repository; `undefined` for packages of npm and builtins. */
function resolveImport(importer: string, specifier: string): string | undefined {
  if (/^\..*\.ts$/.test(specifier)) return posix.join(posix.dirname(importer), specifier);
  const [, workspace, module] = /^@tollgate\/([\w-]+)\/(.+)$/.exec(specifier) ?? [];
  return workspace === undefined ? undefined : `packages/${workspace}/src/${module}.ts`;
}

/** A step or a test file, and how long it took. */
export interface Duration {
  readonly name: string;
  readonly seconds: number;
}

/** How many test files a table of the summary names. */
const slowest = 15;

/** Tables for people: all steps in their order, then the longest and most expensive test files. */
export function formatSummary(
  steps: readonly Duration[],
  files: readonly (Duration & { readonly cpuSeconds: number })[],
): string {
  const row = (seconds: number, name: string) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`;
  const top = (key: 'seconds' | 'cpuSeconds') =>
    files
      .toSorted((a, b) => b[key] - a[key])
      .slice(0, slowest)
      .map((file) => row(file[key], file.name));
  return [
    'what took long:\n',
    ...steps.map(({ seconds, name }) => row(seconds, name)),
    `slowest of ${files.length} test files, which do not run alone:\n`,
    ...top('seconds'),
    'CPU time of the most expensive test files:\n',
    ...top('cpuSeconds'),
  ].join('');
}
