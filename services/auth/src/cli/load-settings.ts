import { readFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';
import { type Environment, formatSettingProblems } from '@tollgate/kit/settings';
import { readSettings, type Settings } from '../settings/settings.ts';

/** What a command runs with. */
export interface LoadedSettings {
  readonly settings: Settings;
  /** The variables that they were read from. */
  readonly env: Environment;
}

/** Changes the environment before it is read; development mode makes up what is not set. */
export type Prepare = (env: Environment) => Promise<Environment>;

const defaultFile = '.env';

/** Reads the settings from environment and file. Prints all that is wrong and exits with 1 when something is. */
export async function loadSettings(
  environmentFile: string | undefined,
  prepare?: Prepare,
): Promise<LoadedSettings> {
  // What the environment says goes before what the file says.
  const given: Environment = { ...(await readFileOf(environmentFile)), ...process.env };
  const env = (await prepare?.(given)) ?? given;
  const read = readSettings(env);
  if (!read.ok) fail(formatSettingProblems(read.problems));
  return { settings: read.settings, env };
}

async function readFileOf(file: string | undefined): Promise<Environment> {
  try {
    return parseEnv(await readFile(file ?? defaultFile, 'utf8'));
  } catch (error) {
    if (file === undefined && (error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    fail(`the file of variables cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
