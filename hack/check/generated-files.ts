import { readFile } from 'node:fs/promises';
import { filesBelow } from '../generate/files-below.ts';
import { type Generator, generators } from '../generate/generators.ts';
import type { Finding } from './run-checks.ts';

/** Renders everything that is generated and names what differs from the files in the repository. */
export async function generatedFilesCheck(): Promise<Finding> {
  const problems = (await Promise.all(generators.map(staleFiles))).flat();
  const advice = 'Run make generate and commit the result; generated files are never edited.';
  return { ok: problems.length === 0, output: [...problems, advice].join('\n') };
}

/** Problems of one generator: files that differ, are missing, or are not generated (any more). */
export async function staleFiles({ output, render }: Generator): Promise<string[]> {
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
