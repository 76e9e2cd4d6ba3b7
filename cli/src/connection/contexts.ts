import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { replaceTextFile } from '@tollgate/kit/text-files';
import type { VersionedRecord } from '@tollgate/oauth2-client/token-manager';
import { CommandFailure } from '../failure.ts';
import { withFileLock } from './file-lock.ts';
import { withoutSlash } from './inputs.ts';

/** The services of one installation. */
export interface Context {
  /** Base URL of the user authentication server. */
  readonly authUrl?: string;
  /** An API key with admin scopes. */
  readonly key?: string;
  /** Tokens of `tollgate login`, which are used instead of `key`. */
  readonly login?: VersionedRecord;
  /** Base URLs of the counter API, one for each replica of the rate limit service. */
  readonly limiterUrls?: readonly string[];
  /** A token of the counter API. Default: that of `login`, or `key`. */
  readonly limiterToken?: string;
  /** Base URL of the admin API of the xDS server. */
  readonly xdsUrl?: string;
  /** Its XDS_ADMIN_TOKEN. Default: the API key. */
  readonly xdsToken?: string;
  /** Base URL of the admin port of the console. */
  readonly consoleUrl?: string;
}

/** The file with all contexts. */
export interface ContextFile {
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

/** `$TOLLGATE_CONFIG`, or `tollgate/config.json` in the folder for configuration. */
export function contextFilePath({ TOLLGATE_CONFIG, XDG_CONFIG_HOME }: NodeJS.ProcessEnv): string {
  return TOLLGATE_CONFIG || join(XDG_CONFIG_HOME || join(homedir(), '.config'), 'tollgate', 'config.json');
}

/** @throws CommandFailure when the file is there and cannot be read. */
export async function readContexts(path: string): Promise<ContextFile> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new CommandFailure(`${path} cannot be read: ${error.message}`);
  });
  return text === undefined ? { contexts: {} } : parseContexts(path, text);
}

function parseContexts(path: string, text: string): ContextFile {
  let value: unknown;
  try {
    // Editors of Windows may write a byte order mark.
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    value = undefined;
  }
  if (!isContextFile(value))
    throw new CommandFailure(
      `${path} is no file of contexts: correct or remove it, and run tollgate context set --help`,
    );
  return value;
}

function isContextFile(value: unknown): value is ContextFile {
  if (typeof value !== 'object' || value === null || !('contexts' in value)) return false;
  const { contexts } = value;
  return typeof contexts === 'object' && contexts !== null && Object.values(contexts).every(isContext);
}

function isContext(value: unknown): value is Context {
  if (typeof value !== 'object' || value === null) return false;
  const { limiterUrls = [], login, ...texts }: Partial<Record<string, unknown>> = { ...value };
  const isTextList = Array.isArray(limiterUrls) && limiterUrls.every((url) => typeof url === 'string');
  if (login !== undefined && !isLogin(login)) return false;
  return isTextList && Object.values(texts).every((text) => typeof text === 'string');
}

function isLogin(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { version, record }: Partial<Record<string, unknown>> = { ...value };
  return typeof version === 'string' && typeof record === 'object' && record !== null;
}

export function findContext({ contexts }: ContextFile, name: string): Context | undefined {
  return Object.hasOwn(contexts, name) ? contexts[name] : undefined;
}

/**
 * Changes the file while no other command does: it has tokens that another one may have renewed.
 * Returns false if `change` returns no new content.
 */
export async function updateContexts(
  path: string,
  change: (file: ContextFile) => ContextFile | undefined,
): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return withFileLock(path, async () => {
    const next = change(await readContexts(path));
    // It has keys: only its owner may read it.
    if (next !== undefined) await replaceTextFile(path, `${JSON.stringify(next, null, 2)}\n`);
    return next !== undefined;
  });
}

/**
 * The context with an auth server, which starts empty with another one than before: that is another
 * installation, and no service of one may get the tokens and keys of the other.
 */
export function forAuthServer(context: Context | undefined, authUrl: string): Context {
  return context === undefined || hasOtherAuthServer(context, authUrl)
    ? { authUrl }
    : { ...context, authUrl };
}

export function hasOtherAuthServer({ authUrl: known }: Context, authUrl: string): boolean {
  return known !== undefined && withoutSlash(known) !== withoutSlash(authUrl);
}
