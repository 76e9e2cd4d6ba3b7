import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { getErrorMessage, isMissingFile } from '@tollgate/kit/errors';
import { readTextFile, readTextFiles } from '@tollgate/kit/text-files';
import type { Source } from '@tollgate/policies/files/documents';
import { formatFinding } from '@tollgate/policies/files/finding';
import type { LoadedPolicies } from '@tollgate/policies/files/load';
import { CommandFailure, exitCodes } from '../failure.ts';

/** More than a Kubernetes object, and all limits of a large installation, can have. */
const maxBytes = 64 * 1024 * 1024;

const manifests = { ignoreDotFiles: true, extensions: ['.yaml', '.yml', '.json'] };

/**
 * Reads files, the YAML and JSON files below folders, and standard input for `-`.
 *
 * @throws CommandFailure that names what cannot be read
 */
export async function readSources(
  paths: readonly string[],
  readInput: () => Promise<string>,
): Promise<readonly Source[]> {
  const sources: Source[] = [];
  for (const path of new Set(paths)) {
    if (path === '-') sources.push({ path: '<stdin>', text: await readInput(), isNamed: true });
    else sources.push(...(await readPath(path)));
  }
  return sources;
}

async function readPath(path: string): Promise<readonly Source[]> {
  try {
    if (!(await stat(path)).isDirectory())
      return [{ path, text: await readTextFile(path, maxBytes), isNamed: true }];
  } catch (error) {
    throw new CommandFailure(
      `${path} cannot be read: ${isMissingFile(error) ? 'there is no such file or folder' : getErrorMessage(error)}`,
    );
  }
  const { files, problems } = await readTextFiles({ directory: path, labelRoot: path, ...manifests });
  const [problem] = problems;
  if (problem !== undefined)
    throw new CommandFailure(`${join(path, problem.source)} cannot be read: ${problem.message}`);
  return files.map(({ source, text }) => ({ path: join(path, source), text, isNamed: false }));
}

/** @throws CommandFailure with everything that keeps the services from accepting the files */
export function requireValid(loaded: LoadedPolicies): LoadedPolicies {
  const problems = loaded.findings.filter(({ severity }) => severity === 'problem');
  if (problems.length > 0)
    throw new CommandFailure(problems.map(formatFinding).join('\n'), exitCodes.unhealthy);
  return loaded;
}
