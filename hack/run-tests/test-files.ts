import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { load } from 'js-yaml';

/** A file that starts one of the programs that `hack/setup.sh go-tools` compiles. */
const startsGoTool = /findBinary\('(?:actionlint|ghz|helm|h2spec|kube[\w-]*)'\)|find\('kube-apiserver'\)/;

/** The specifier of an `import` or `export … from` statement, or of `import()` with a constant. */
const importPattern =
  /^(?:import\s+|(?:import|export)\b[^'"`;]*\bfrom\s+)'([^'\n]+)'|\bimport\('([^'\n]+)'\)/gm;

/** All test files of the repository at `root`, by the patterns of `.taprc`, sorted. */
export function allTestFiles(root: string): string[] {
  // Our own file; without `include` tap would not find the tests either.
  const { include } = load(readFileSync(join(root, '.taprc'), 'utf8')) as { include: string[] };
  return globSync(include, { cwd: root, exclude: ['**/node_modules/**'] }).sort();
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

/** How many test files the summary names. */
const slowest = 15;

/** A table for people: all steps in their order, then the slowest test files. */
export function formatSummary(steps: readonly Duration[], files: readonly Duration[]): string {
  const row = ({ name, seconds }: Duration) => `${seconds.toFixed(1).padStart(8)} s  ${name}\n`;
  const longest = [...files].sort((a, b) => b.seconds - a.seconds).slice(0, slowest);
  const heading = `slowest of ${files.length} test files, which do not run alone:\n`;
  return ['what took long:\n', ...steps.map(row), heading, ...longest.map(row)].join('');
}
