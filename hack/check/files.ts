import { lstat, readFile } from 'node:fs/promises';
import type { Generator } from '../generate/generators.ts';
import { filesBelow } from '../generate/render.ts';
import { runTool } from './run-checks.ts';

/**
 * Paths, relative to the current folder, of all files that are or would be committed: tracked and
 * new ones, without deleted ones, ignored ones and symbolic links.
 *
 * @throws Error outside a git checkout.
 */
export async function repositoryFiles(): Promise<string[]> {
  const list = async (...args: string[]) => {
    const { ok, output } = await runTool('git', ['ls-files', '-z', ...args]);
    if (!ok) throw new Error(`git ls-files: ${output}`);
    return output.split('\0').filter((path) => path !== '');
  };
  const [present, deleted] = await Promise.all([
    list('--cached', '--others', '--exclude-standard'),
    list('--deleted'),
  ]);
  const gone = new Set(deleted);
  const paths = present.filter((path) => !gone.has(path)).sort();
  const isFile = await Promise.all(paths.map(async (path) => (await lstat(path)).isFile()));
  return paths.filter((_path, index) => isFile[index]);
}

export async function readAll(paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const read = async (path: string): Promise<[string, string]> => [path, await readFile(path, 'utf8')];
  return new Map(await Promise.all(paths.map(read)));
}

/**
 * Problems of one generator: files that differ from what it renders, are missing, or are no longer
 * generated.
 */
export async function findStaleFiles({ output, render }: Generator): Promise<string[]> {
  const expected = await render();
  const present = output.endsWith('/') ? (await filesBelow(output)).map((path) => output + path) : [output];
  const surplus = present.filter((path) => !expected.has(path)).map((path) => `${path} is not generated`);
  const differing = await Promise.all(
    [...expected].map(async ([path, text]) => {
      const found = await readFile(path, 'utf8').catch(() => undefined);
      if (found === undefined) return [`${path} is missing`];
      return found === text ? [] : [`${path} is out of date`];
    }),
  );
  return [...surplus, ...differing.flat()];
}
