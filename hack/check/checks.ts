import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generators } from '../generate/generators.ts';
import { findStaleFiles, readAll, repositoryFiles } from './files.ts';
import { findCycles, findStrayTestFolders } from './floors.ts';
import { findForbiddenTexts } from './forbidden-texts.ts';
import { cacheFolders, withKeptCache } from './kept-cache.ts';
import { findDeadLinks } from './links.ts';
import { findUnverifiedPackages } from './lock-file.ts';
import { findOpenApiProblems } from './open-api.ts';
import { type Check, type Finding, runTool } from './run-checks.ts';
import { findNumberGaps, findUnusualSizes } from './sizes.ts';

/** Everything that `npm run check` runs. The slowest come first. */
export const checks: readonly Check[] = [
  { name: 'spelling (cspell)', run: checkSpelling },
  { name: 'types (tsc)', run: checkTypes },
  { name: 'format and lint (biome)', run: () => runTool('biome', ['ci', '--colors=off', '.']) },
  { name: 'generated files up to date', run: checkGeneratedFiles },
  { name: 'dead code (knip)', run: () => runTool('knip', ['--no-progress', '--no-config-hints']) },
  { name: 'lock file complete (npm ci)', run: checkLockFile },
  {
    name: 'OpenAPI documents',
    run: checkOpenApi,
  },
  { name: 'links in Markdown', run: checkLinks },
  { name: 'forbidden texts', run: checkTexts },
  { name: 'numbers of decisions', run: async () => toFinding(findNumberGaps(await repositoryFiles())) },
  { name: 'floors of folders', run: checkFloors },
  { name: 'tests mirror src', run: async () => toFinding(findStrayTestFolders(await repositoryFiles())) },
  { name: 'sizes', run: checkSizes },
];

/** Scripts of browsers have the types of the DOM, which contradict those of Node. */
const browserProject = 'services/console/src/browser';

/** Checks again what a change has an effect on: a quarter of the time of a whole check. */
async function checkTypes(): Promise<Finding> {
  const common = ['--noEmit', '--pretty', 'false'];
  const folders = cacheFolders('tsc');
  const incremental = ['--incremental', '--tsBuildInfoFile', join(folders.used, 'build')];
  const results = [
    await withKeptCache(folders, () => runTool('tsc', [...common, ...incremental])),
    await runTool('tsc', [...common, '--project', browserProject]),
  ];
  return { ok: results.every(({ ok }) => ok), output: results.map(({ output }) => output).join('\n') };
}

async function checkGeneratedFiles(): Promise<Finding> {
  const problems = (await Promise.all(generators.map(findStaleFiles))).flat();
  const advice = 'Run make generate and commit the result; generated files are never edited.';
  return toFinding(problems.length === 0 ? [] : [...problems, advice]);
}

/** npm compares the lock file with every package.json before it installs anything. */
async function checkLockFile(): Promise<Finding> {
  const unverified = findUnverifiedPackages(await readFile('package-lock.json', 'utf8'));
  const { ok, output } = await runTool('npm', ['ci', '--dry-run', '--ignore-scripts', '--loglevel=error']);
  const advice = [
    'Run npm install. If packages for other platforms are missing or have no integrity, the registry does not',
    'have them for this version yet: pin a version that is complete.',
  ];
  return {
    ok: ok && unverified.length === 0,
    output: [...unverified, output, ...advice].join('\n'),
  };
}

async function checkOpenApi(): Promise<Finding> {
  const documents = (await repositoryFiles()).filter((path) => /^docs\/openapi-.+\.json$/.test(path));
  return toFinding((await Promise.all(documents.map(findOpenApiProblems))).flat());
}

async function checkLinks(): Promise<Finding> {
  const files = await repositoryFiles();
  return toFinding(findDeadLinks(files, await readAll(files.filter((path) => path.endsWith('.md')))));
}

async function checkTexts(): Promise<Finding> {
  const texts = await readAll(await repositoryFiles());
  return toFinding([...texts].flatMap(([path, text]) => findForbiddenTexts(path, text)));
}

/** Unknown words are mistakes, or belong into hack/check/words.txt. */
async function checkSpelling(): Promise<Finding> {
  const folders = cacheFolders('cspell');
  const location = `--cache-location=${join(folders.used, 'results')}`;
  const cache = ['--cache', '--cache-strategy=content', location];
  // As arguments: for files that it reads from a list, a cached result has no problems.
  const files = await repositoryFiles();
  return withKeptCache(folders, () =>
    runTool('cspell', ['lint', '--no-progress', '--no-summary', ...cache, ...files]),
  );
}

async function checkFloors(): Promise<Finding> {
  const paths = (await repositoryFiles()).filter((path) => /\/src\/.+\.ts$/.test(path));
  return toFinding(findCycles(await readAll(paths)));
}

/** Warns only: a table or a state machine may be long. */
async function checkSizes(): Promise<Finding> {
  const isSource = (path: string) =>
    path.endsWith('.ts') && !/(?:^|\/)(?:test|generated|testdata)\/|\.d\.ts$/.test(path);
  const sources = await readAll((await repositoryFiles()).filter(isSource));
  const only = '--only=complexity/noExcessiveLinesPerFunction';
  const biome = await runTool('biome', ['lint', only, '--reporter=concise', '--max-diagnostics=none', '.']);
  const functions = [
    ...biome.output.matchAll(/^\S+ (\S+?\.ts):(\d+):\d+: .*too many lines \((\d+)\)/gm),
  ].flatMap(([, path = '', line, lines]) =>
    isSource(path) && !path.endsWith('.test.ts')
      ? [`${path}:${line}: function of ${lines} lines, more than 60`]
      : [],
  );
  return { ok: true, output: '', warnings: [...findUnusualSizes(sources), ...functions] };
}

function toFinding(problems: readonly string[]): Finding {
  return { ok: problems.length === 0, output: problems.join('\n') };
}
