import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { getErrorMessage, isMissingFile } from '@tollgate/kit/errors';
import { createLogger, type Logger, logFile } from '@tollgate/kit/logger';
import { type Environment, formatSettingProblems } from '@tollgate/kit/settings';
import type { SettingSources, StartReport } from '@tollgate/kit/start-report';
import { readTextFile } from '@tollgate/kit/text-files';
import { findImplied } from '../config/implied-settings.ts';
import { readSettings, type Settings } from '../config/settings.ts';
import { settingWarnings, withoutServiceLinks } from '../config/warnings.ts';

/** The variables of a file, or its first invalid line. */
export type EnvFile =
  | { readonly ok: true; readonly variables: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly line: number; readonly problem: string };

/**
 * Parses variables as godotenv does, which GoTrue uses. Node's parseEnv is different: it cuts
 * values at every `#` and does not support `\"`.
 *
 * - `NAME=value` or `NAME: value`, optionally after `export`
 * - `#` starts a comment only after white space
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
    const value = parseValue(source, name.end);
    if (value === undefined)
      return fail(`the quotes of ${name.group} are not closed, or are followed by text`);
    variables[name.group] = value.text;
    at = value.end;
  }
}

interface Value {
  readonly text: string;
  readonly end: number;
}

function parseValue(source: string, at: number): Value | undefined {
  const quote = source[at];
  if (quote !== '"' && quote !== "'") return parsePlainValue(source, at);
  const quoted = quote === '"' ? /"((?:[^"\\]|\\.)*)"/sy : /'((?:[^'\\]|\\.)*)'/sy;
  const found = matchAt(quoted, source, at);
  const rest = found && matchAt(/[^\S\n]*(?:#[^\n]*)?(?=\n|$)/y, source, found.end);
  if (found === undefined || rest === undefined) return undefined;
  return { text: quote === '"' ? expandEscapes(found.group) : found.group, end: rest.end };
}

function parsePlainValue(source: string, at: number): Value {
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

/** Matches a sticky pattern. */
function matchAt(pattern: RegExp, source: string, at: number): { group: string; end: number } | undefined {
  pattern.lastIndex = at;
  const found = pattern.exec(source);
  return found === null ? undefined : { group: found[1] ?? '', end: pattern.lastIndex };
}

/** Sources of variables, which the environment overrides. */
export interface EnvironmentFiles {
  /** Default `.env`, which is optional. */
  readonly file?: string | undefined;
  /** All of its `*.env` files, which override `file`. The last by name wins. */
  readonly folder?: string | undefined;
}

export interface LoadedSettings {
  readonly settings: Settings;
  /** The source of the settings. */
  readonly env: Environment;
  readonly sources: SettingSources;
}

/** The settings, or a message for operators. */
export type ReadSettings =
  | ({ readonly ok: true } & LoadedSettings)
  | { readonly ok: false; readonly message: string };

/** Changes the environment before it is parsed; development mode adds defaults. */
export type Prepare = (env: Environment) => Promise<Environment>;

const defaultFile = '.env';
const maxFileBytes = 1024 * 1024;

/**
 * Reads the settings from environment and files. Prints all problems and exits with 1 if they are
 * invalid.
 */
export async function loadSettings(files: EnvironmentFiles, prepare?: Prepare): Promise<LoadedSettings> {
  const read = await readSettingsFrom(files, prepare);
  if (read.ok) return read;
  process.stderr.write(`${read.message}\n`);
  process.exit(1);
}

export async function readSettingsFrom(files: EnvironmentFiles, prepare?: Prepare): Promise<ReadSettings> {
  let env: Environment;
  let sources: SettingSources;
  try {
    const given = await readSources(files);
    env = (await prepare?.(given.env)) ?? given.env;
    sources = { ...given, implied: findImplied(given.env, env) };
  } catch (error) {
    return { ok: false, message: getErrorMessage(error) };
  }
  const read = readSettings(env);
  return read.ok
    ? { ok: true, settings: read.settings, env, sources }
    : { ok: false, message: [formatSettingProblems(read.problems), ...misspellings(env)].join('\n') };
}

/** A misspelled name may be the cause of a missing setting, and the logger does not exist yet. */
function misspellings(env: Environment): string[] {
  return settingWarnings(env).flatMap(({ variable, meant }) =>
    meant === undefined ? [] : [`  ${variable} is unknown, did you mean ${meant}?`],
  );
}

/**
 * Variables of the files and of the environment, which takes precedence.
 *
 * @throws Error that names an unreadable file.
 */
export async function readEnvironment(files: EnvironmentFiles): Promise<Environment> {
  return (await readSources(files)).env;
}

/** Reads all variables, with the file of each one. */
async function readSources({
  file,
  folder,
}: EnvironmentFiles): Promise<Pick<Required<SettingSources>, 'env' | 'files'>> {
  const texts = [...(await readEnvFile(file)), ...(await readFolder(folder))];
  const env = Object.assign({}, ...texts.map(({ variables }) => variables), process.env);
  const paths = texts.flatMap(({ path, variables }) =>
    Object.keys(variables).map((variable) => [variable, path] as const),
  );
  const files = new Map(paths.filter(([variable]) => process.env[variable] === undefined));
  return { env: withoutServiceLinks(env), files };
}

/** Variables of a file. */
interface ReadFile {
  readonly path: string;
  readonly variables: Environment;
}

async function readEnvFile(file: string | undefined): Promise<readonly ReadFile[]> {
  const path = file ?? defaultFile;
  try {
    return [{ path, variables: await readVariables(path) }];
  } catch (error) {
    if (file === undefined && error instanceof Error && isMissingFile(error.cause)) return [];
    throw error;
  }
}

async function readFolder(folder: string | undefined): Promise<readonly ReadFile[]> {
  if (folder === undefined) return [];
  const names = (await readdir(folder)).filter((name) => name.endsWith('.env')).sort();
  const paths = names.map((name) => join(folder, name));
  return Promise.all(paths.map(async (path) => ({ path, variables: await readVariables(path) })));
}

/**
 * Reads a file of variables.
 *
 * @throws Error that names the file, and the line that is wrong.
 */
export async function readVariables(path: string): Promise<Environment> {
  const text = await readTextFile(path, maxFileBytes).catch((cause: unknown) => {
    const because = getErrorMessage(cause);
    throw new Error(`${path} cannot be read: ${because}`, { cause });
  });
  const read = parseEnvFile(text);
  if (read.ok) return read.variables;
  throw new Error(`${path}:${read.line}: ${read.problem}`);
}

/**
 * Logs JSON, or text in development mode, to a file or standard error. Exits with 1 if the file
 * cannot be opened.
 */
export function createCommandLogger(
  settings: Pick<Settings, 'logLevel' | 'logFile' | 'mode'>,
  report?: StartReport,
): Logger {
  const format = settings.mode === 'development' ? 'text' : 'json';
  const destination = settings.logFile === '' ? undefined : openFile(settings.logFile);
  const options = { level: settings.logLevel, format, ...(destination && { destination }) } as const;
  return createLogger({ ...options, ...(report && { mask: report.maskLine, onLine: report.readLine }) });
}

function openFile(path: string): ReturnType<typeof logFile> {
  try {
    return logFile(path);
  } catch (error) {
    const because = getErrorMessage(error);
    process.stderr.write(`cannot write LOG_FILE: ${because}\n`);
    process.exit(1);
  }
}
