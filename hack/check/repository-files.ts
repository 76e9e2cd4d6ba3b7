import { lstat } from 'node:fs/promises';
import { runTool } from './run-tool.ts';

/**
 * Paths, relative to the current folder, of all files that are or would be committed: tracked ones and new ones that
 * .gitignore does not name, without those that have been deleted. A link is left out: it leads to one of the others.
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
  return paths.filter((_path, at) => isFile[at]);
}
