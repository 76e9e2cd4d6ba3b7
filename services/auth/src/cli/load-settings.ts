import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readTextFile } from '@tollgate/kit/read-text-file';
import { type Environment, formatSettingProblems } from '@tollgate/kit/settings';
import { withoutServiceLinks } from '../settings/service-links.ts';
import { settingWarnings } from '../settings/setting-warnings.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import { parseEnvFile } from './env-file.ts';

/** Where variables are read from besides the environment, which goes before them. */
export interface EnvironmentFiles {
  /** Default `.env`, which need not be there. */
  readonly file?: string | undefined;
  /** All of its `*.env`, which go before the file; of two that set the same variable the last by name. */
  readonly folder?: string | undefined;
}

/** What a command runs with. */
export interface LoadedSettings {
  readonly settings: Settings;
  /** The variables that they were read from. */
  readonly env: Environment;
}

/** Settings, or what an operator has to know about why there are none. */
export type ReadSettings =
  | ({ readonly ok: true } & LoadedSettings)
  | { readonly ok: false; readonly message: string };

/** Changes the environment before it is read; development mode makes up what is not set. */
export type Prepare = (env: Environment) => Promise<Environment>;

const defaultFile = '.env';
/** What is longer is no list of variables. */
const maxFileBytes = 1024 * 1024;

/** Reads the settings from environment and files. Prints all that is wrong and exits with 1 when something is. */
export async function loadSettings(files: EnvironmentFiles, prepare?: Prepare): Promise<LoadedSettings> {
  const read = await readSettingsFrom(files, prepare);
  if (read.ok) return read;
  process.stderr.write(`${read.message}\n`);
  process.exit(1);
}

/** Reads the settings from environment and files. */
export async function readSettingsFrom(files: EnvironmentFiles, prepare?: Prepare): Promise<ReadSettings> {
  let env: Environment;
  try {
    const given = await readEnvironment(files);
    env = (await prepare?.(given)) ?? given;
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
  const read = readSettings(env);
  return read.ok
    ? { ok: true, settings: read.settings, env }
    : { ok: false, message: [formatSettingProblems(read.problems), ...misspellings(env)].join('\n') };
}

/** A misspelled name may be the reason for a missing setting; the log is not open yet. */
function misspellings(env: Environment): string[] {
  return settingWarnings(env).flatMap(({ variable, meant }) =>
    meant === undefined ? [] : [`  ${variable} is set and unknown: perhaps ${meant} was meant`],
  );
}

/**
 * Variables of the files and of the environment, which takes precedence.
 *
 * @throws Error that names the file that cannot be read.
 */
export async function readEnvironment(files: EnvironmentFiles): Promise<Environment> {
  const read = { ...(await readFileOf(files.file)), ...(await readFolder(files.folder)), ...process.env };
  return withoutServiceLinks(read);
}

async function readFileOf(file: string | undefined): Promise<Environment> {
  try {
    return await readVariables(file ?? defaultFile);
  } catch (error) {
    if (file === undefined && isMissing(error)) return {};
    throw error;
  }
}

async function readFolder(folder: string | undefined): Promise<Environment> {
  if (folder === undefined) return {};
  const names = (await readdir(folder)).filter((name) => name.endsWith('.env')).sort();
  const files = await Promise.all(names.map((name) => readVariables(join(folder, name))));
  return Object.assign({}, ...files);
}

/**
 * Reads a file of variables.
 *
 * @throws Error that names the file, and the line that is wrong.
 */
export async function readVariables(path: string): Promise<Environment> {
  const text = await readTextFile(path, maxFileBytes).catch((cause: unknown) => {
    const because = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${path} cannot be read: ${because}`, { cause });
  });
  const read = parseEnvFile(text);
  if (read.ok) return read.variables;
  throw new Error(`${path}:${read.line}: ${read.problem}`);
}

function isMissing(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
}
