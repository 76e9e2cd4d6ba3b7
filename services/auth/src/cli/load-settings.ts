import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger, type Logger, logFile } from '@tollgate/kit/logger';
import { type Environment, formatSettingProblems } from '@tollgate/kit/settings';
import { readTextFile } from '@tollgate/kit/text-files';
import { readSettings, type Settings } from '../config/settings.ts';
import { settingWarnings, withoutServiceLinks } from '../config/warnings.ts';

/** The variables of a file, or the first line that is none. */
export type EnvFile =
  | { readonly ok: true; readonly variables: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly line: number; readonly problem: string };

/**
 * Reads a file of variables as godotenv does, which GoTrue uses. Node's parseEnv is no substitute:
 * it cuts values at every `#` and has no `\"`.
 *
 * - `NAME=value` or `NAME: value`, optionally after `export`
 * - `#` starts a comment after a blank only
 * - double quotes have the escapes `\n`, `\"` and `\$`, single quotes none; both may span lines
 * - `$NAME` is not expanded
 *
 * @see https://github.com/joho/godotenv
 */
export function parseEnvFile(text: string): EnvFile {
  const source = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  const variables: Record<string, string> = Object.create(null);
  let at = 0;
  const fail = (problem: string): EnvFile => ({
    ok: false,
    line: source.slice(0, at).split('\n').length,
    problem,
  });
  for (;;) {
    at = matchAt(/(?:\s+|#[^\n]*)*/y, source, at)?.end ?? at;
    if (at >= source.length) return { ok: true, variables: { ...variables } };
    const name = matchAt(/(?:export[^\S\n]+)?([\w.]+)[^\S\n]*[=:][^\S\n]*/y, source, at);
    if (name === undefined) return fail('expected NAME=value');
    const value = valueAt(source, name.end);
    if (value === undefined) return fail(`the quotes of ${name.group} are not closed, or text follows them`);
    variables[name.group] = value.text;
    at = value.end;
  }
}

interface Value {
  readonly text: string;
  readonly end: number;
}

function valueAt(source: string, at: number): Value | undefined {
  const quote = source[at];
  if (quote !== '"' && quote !== "'") return plainValue(source, at);
  const quoted = quote === '"' ? /"((?:[^"\\]|\\.)*)"/sy : /'((?:[^'\\]|\\.)*)'/sy;
  const found = matchAt(quoted, source, at);
  const rest = found && matchAt(/[^\S\n]*(?:#[^\n]*)?(?=\n|$)/y, source, found.end);
  if (found === undefined || rest === undefined) return undefined;
  return { text: quote === '"' ? expandEscapes(found.group) : found.group, end: rest.end };
}

function plainValue(source: string, at: number): Value {
  const end = source.indexOf('\n', at);
  const line = source.slice(at, end === -1 ? undefined : end);
  return {
    text: line
      .replace(/\s#.*$/, '')
      .trim()
      .replaceAll('\\$', '$'),
    end: at + line.length,
  };
}

function expandEscapes(text: string): string {
  return text.replaceAll(/\\(.)/gs, (_escape, char: string) => ({ n: '\n', r: '\r' })[char] ?? char);
}

/** What a sticky pattern matches at a place. */
function matchAt(pattern: RegExp, source: string, at: number): { group: string; end: number } | undefined {
  pattern.lastIndex = at;
  const found = pattern.exec(source);
  return found === null ? undefined : { group: found[1] ?? '', end: pattern.lastIndex };
}

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

/** The logger that the settings ask for: JSON, in development mode text; to a file, or to standard error. Exits with 1 when there is no such file. */
export function createCommandLogger(settings: Pick<Settings, 'logLevel' | 'logFile' | 'mode'>): Logger {
  const format = settings.mode === 'development' ? 'text' : 'json';
  const destination = settings.logFile === '' ? undefined : openFile(settings.logFile);
  return createLogger({ level: settings.logLevel, format, ...(destination && { destination }) });
}

function openFile(path: string): ReturnType<typeof logFile> {
  try {
    return logFile(path);
  } catch (error) {
    const because = error instanceof Error ? error.message : String(error);
    process.stderr.write(`LOG_FILE cannot be written: ${because}\n`);
    process.exit(1);
  }
}
