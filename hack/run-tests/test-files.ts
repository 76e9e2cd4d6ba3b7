import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { load } from 'js-yaml';
import { findImports } from '../check/find-imports.ts';
import { scanSource } from '../check/scan-source.ts';

/** A file that starts one of the programs that `hack/setup.sh go-tools` compiles. */
const startsGoTool = /findBinary\('(?:helm|h2spec|kube[\w-]*)'\)|find\('kube-apiserver'\)/;

/** All test files of the repository at `root`, by the patterns of `.taprc`, sorted. */
export function allTestFiles(root: string): string[] {
  // Our own file; without `include` tap would not find the tests either.
  const { include } = load(readFileSync(join(root, '.taprc'), 'utf8')) as { include: string[] };
  return globSync(include, { cwd: root, exclude: ['**/node_modules/**'] }).sort();
}

/**
 * Splits test files by whether they need the programs in Go: those from which an import leads to a file that starts
 * one of them. Paths are relative to `root`; other arguments of tap, such as folders, count as needing them.
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
      findImports(scanSource(source)).some(({ specifier }) => {
        const target = resolveImport(path, specifier);
        return target !== undefined && existsSync(join(root, target)) && needs(target);
      });
    known.set(path, result);
    return result;
  };
  const groups = Object.groupBy(files, (path) =>
    !path.endsWith('.test.ts') || needs(posix.normalize(path)) ? 'with' : 'without',
  );
  return { without: groups.without ?? [], with: groups.with ?? [] };
}

/** The file of an import of this repository; `undefined` for packages of npm and builtins. */
function resolveImport(importer: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(importer), specifier);
  const [, workspace, module] = /^@tollgate\/([\w-]+)\/(.+)$/.exec(specifier) ?? [];
  return workspace === undefined ? undefined : `packages/${workspace}/src/${module}.ts`;
}
