import { readFile } from 'node:fs/promises';
import { deadLinks } from './dead-links.ts';
import { forbiddenTexts } from './forbidden-texts.ts';
import { generatedFilesCheck } from './generated-files.ts';
import { repositoryFiles } from './repository-files.ts';
import type { Check, Finding } from './run-checks.ts';
import { runTool } from './run-tool.ts';

/** All that `npm run check` runs; a new check is one entry. The slowest come first. */
export const checks: readonly Check[] = [
  { name: 'generated files up to date', run: generatedFilesCheck },
  {
    name: 'dead code (knip)',
    run: () => runTool('knip', ['--no-progress', '--no-config-hints']),
  },
  { name: 'format and lint (biome)', run: () => runTool('biome', ['ci', '--colors=off', '.']) },
  { name: 'types (tsc)', run: () => runTool('tsc', ['--noEmit', '--pretty', 'false']) },
  { name: 'lock file whole (npm ci)', run: lockFileCheck },
  { name: 'links in Markdown', run: linkCheck },
  { name: 'texts that have no place here', run: () => lineByLine(/./, forbiddenTexts) },
];

/** Would a fresh clone install? npm compares the lock file with every package.json before it touches anything. */
async function lockFileCheck(): Promise<Finding> {
  const { ok, output } = await runTool('npm', ['ci', '--dry-run', '--ignore-scripts', '--loglevel=error']);
  const advice =
    'Run npm install; if packages of other platforms are still missing, node hack/complete-lock/main.ts.';
  return { ok, output: `${output}\n${advice}` };
}

async function linkCheck(): Promise<Finding> {
  const files = await repositoryFiles();
  const read = async (path: string): Promise<[string, string]> => [path, await readFile(path, 'utf8')];
  const pages = new Map(await Promise.all(files.filter((path) => path.endsWith('.md')).map(read)));
  const output = deadLinks(files, pages).join('\n');
  return { ok: output === '', output };
}

/** Applies a check of single files to all files of the repository whose path fits. */
async function lineByLine(
  paths: RegExp,
  problemsOf: (path: string, text: string) => readonly string[],
): Promise<Finding> {
  const files = (await repositoryFiles()).filter((path) => paths.test(path));
  const problems = await Promise.all(
    files.map(async (path) => problemsOf(path, await readFile(path, 'utf8'))),
  );
  const output = problems.flat().join('\n');
  return { ok: output === '', output };
}
