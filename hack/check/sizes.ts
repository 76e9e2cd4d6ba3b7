import { basename, dirname } from 'node:path';

const minFileLines = 30;
const maxFileLines = 400;
const minFolderFiles = 3;

/** Entry points, constants of a service, examples, and tests. */
const mayBeShort =
  /(?:^|\/)(?:main|index|errors|metrics)\.ts$|\.test\.ts$|^client-sdk\/examples\/|^hack\/[\w-]+\.ts$/;

/**
 * Source files and folders outside the sizes of CONTRIBUTING.md, as `path: …`.
 *
 * @param sources text of the TypeScript files that are not generated and not in a folder of tests,
 * by path
 */
export function findUnusualSizes(sources: ReadonlyMap<string, string>): string[] {
  const files = [...sources].flatMap(([path, text]) => {
    const lines = text.split('\n').length - 1;
    if (lines > maxFileLines && !path.endsWith('.test.ts'))
      return [`${path}: ${lines} lines, more than ${maxFileLines}`];
    if (lines >= minFileLines || mayBeShort.test(path)) return [];
    return [`${path}: ${lines} lines, fewer than ${minFileLines}`];
  });
  const byFolder = Map.groupBy(sources.keys(), (path) => dirname(path));
  const isParent = (folder: string) => [...byFolder.keys()].some((other) => other.startsWith(`${folder}/`));
  const folders = [...byFolder].flatMap(([folder, { length }]) =>
    length >= minFolderFiles || basename(folder) === 'src' || isParent(folder)
      ? []
      : [`${folder}/: ${length} ${length === 1 ? 'file' : 'files'}, fewer than ${minFolderFiles}`],
  );
  return [...files, ...folders];
}

/** Numbers that are missing or used twice among the decisions in `docs/decisions`. */
export function findNumberGaps(files: readonly string[]): string[] {
  const numbers = files.flatMap((path) => {
    const [, number] = /^docs\/decisions\/(\d{4})-/.exec(path) ?? [];
    return number === undefined ? [] : [Number(number)];
  });
  const wrong = numbers.toSorted((a, b) => a - b).find((number, index) => number !== index + 1);
  return wrong === undefined
    ? []
    : [`docs/decisions/: numbers must be consecutive from 0001: look at ${String(wrong).padStart(4, '0')}`];
}
