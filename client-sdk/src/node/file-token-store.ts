import { createHash, randomUUID } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { link, mkdir, open, readdir, readFile, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { StoreError } from '../errors.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import { errorMessage } from '../text.ts';
import type { SetOutcome, TokenRecord, TokenStore } from '../tokens/token-store.ts';

/** Options of a file store. */
export interface FileTokenStoreOptions {
  /**
   * A folder for this store alone. Created if missing; one that others than its owner may access is
   * refused.
   */
  readonly folder: string;
}

const optionNames: OptionNames<FileTokenStoreOptions> = { folder: 1 };

const conflict: SetOutcome = { ok: false, reason: 'conflict' };

/** Attempts to read while newer versions replace the listed one. */
const maxReadAttempts = 20;

/** A file is written in milliseconds. After that time the process that made it has ended. */
const maxWriteMs = 10 * 60_000;

/** Temporary files that the first use of a store looks at. */
const maxLeftOvers = 1000;

/**
 * A store in files that many processes of one machine can share, without locks: each version is a
 * file (`<hash of the key>.<version>.json`, mode 0600) that is written to a temporary name, synced,
 * and linked, which succeeds only for the first process. What a process leaves that is killed
 * meanwhile is removed by the first use of a store, and by the next write. The file system must
 * support hard links.
 *
 * @throws StoreError from its methods if the folder cannot be read or written, or is not private;
 * `retryable` unless its mode, its owner or its file system has to be changed first.
 */
export function fileTokenStore(options: FileTokenStoreOptions): TokenStore {
  assertKnownOptions('fileTokenStore', options, optionNames);
  const { folder } = options;
  let isSwept = false;
  async function use<T>(action: () => Promise<T>): Promise<T> {
    try {
      await assertPrivate(folder);
      if (!isSwept) {
        isSwept = true;
        await removeLeftOvers(folder);
      }
      return await action();
    } catch (cause) {
      throw storeError(folder, cause);
    }
  }
  return {
    get: (key) =>
      use(async () => {
        const latest = await readLatest(folder, hashKey(key));
        return latest && { record: latest.record, version: String(latest.version) };
      }),
    set: (key, record, expectedVersion) =>
      use(() => compareAndSwap(folder, hashKey(key), record, expectedVersion)),
  };
}

/** Keys contain URLs, which are not valid file names. */
function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 32);
}

async function readLatest(
  folder: string,
  prefix: string,
): Promise<{ version: number; record: TokenRecord } | undefined> {
  for (let attempt = 0; attempt < maxReadAttempts; attempt += 1) {
    const version = (await listVersions(folder, prefix)).at(-1);
    if (version === undefined) return undefined;
    try {
      const text = await readFile(filePath(folder, prefix, version), 'utf8');
      // Written atomically by this module.
      return { version, record: JSON.parse(text) as TokenRecord };
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
    }
  }
  throw new Error('the files change faster than they can be read');
}

async function compareAndSwap(
  folder: string,
  prefix: string,
  record: TokenRecord,
  expectedVersion: string | undefined,
): Promise<SetOutcome> {
  const current = (await listVersions(folder, prefix)).at(-1);
  if (current?.toString() !== expectedVersion) return conflict;
  const next = (current ?? 0) + 1;
  await makePrivate(folder);
  if (!(await linkInto(folder, { prefix, version: next, content: JSON.stringify(record) }))) return conflict;
  const versions = await listVersions(folder, prefix);
  // Another process was two versions ahead and had removed the version that was just created again.
  const overtaken = (versions.at(-1) ?? next) > next;
  if (overtaken) return conflict;
  await removeOld(folder, prefix, next);
  await syncFolder(folder);
  return { ok: true, version: String(next) };
}

async function makePrivate(folder: string): Promise<void> {
  const created = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (created !== undefined) await syncFolder(dirname(created));
  await assertPrivate(folder);
}

/** The folder has to be changed first. */
class NotPrivate extends Error {
  override readonly name = 'NotPrivate';
}

/** A user who may write into the folder decides which token is used. Windows has no such modes. */
async function assertPrivate(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const found = await stat(folder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (found === undefined) return;
  const mode = found.mode & 0o777;
  if ((mode & 0o077) !== 0)
    throw new NotPrivate(
      `others may access it (mode 0${mode.toString(8)}): run chmod 700, or use a subfolder`,
    );
  if (found.uid !== process.geteuid?.()) throw new NotPrivate(`it belongs to another user (${found.uid})`);
}

/**
 * Creates a version atomically. False if it exists, or if another process has stored it and has
 * removed our temporary file.
 */
async function linkInto(
  folder: string,
  {
    prefix,
    version,
    content,
  }: { readonly prefix: string; readonly version: number; readonly content: string },
): Promise<boolean> {
  const aside = join(folder, `${prefix}.${version}.${writerName()}.${randomUUID()}.tmp`);
  const file = await open(aside, 'wx', 0o600);
  try {
    await file.writeFile(content);
    // The successor of a spent refresh token must survive a power failure.
    await file.sync();
    await file.close();
    await link(aside, filePath(folder, prefix, version));
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST') || hasCode(error, 'ENOENT')) return false;
    throw error;
  } finally {
    await file.close();
    await removeIfThere(aside);
  }
}

/** Names this process among the ones that share the folder. */
function writerName(): string {
  return `${process.pid}@${pidNamespace()}`;
}

/** Containers may share a folder, and have processes with the same ids. */
function pidNamespace(): string {
  let namespace = hostname();
  try {
    namespace += readlinkSync('/proc/self/ns/pid');
  } catch {
    // Only Linux has namespaces.
  }
  return createHash('sha256').update(namespace).digest('hex').slice(0, 16);
}

/** Removes what processes have left that were killed while they wrote. */
async function removeLeftOvers(folder: string): Promise<void> {
  const names = (await listNames(folder)).filter((name) => name.endsWith('.tmp'));
  const namespace = pidNamespace();
  for (const name of names.slice(0, maxLeftOvers)) {
    const path = join(folder, name);
    const [pid, writerNamespace] = (name.split('.')[2] ?? '').split('@');
    const hasEnded = writerNamespace === namespace && !isRunning(Number(pid));
    try {
      if (hasEnded || (await isOld(path))) await removeIfThere(path);
    } catch {
      // A folder that is read-only for this process serves reads.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return !hasCode(error, 'ESRCH');
  }
}

async function isOld(path: string): Promise<boolean> {
  return Date.now() - (await stat(path)).mtimeMs > maxWriteMs;
}

/**
 * Removes earlier versions, and the temporary files of processes that lost or were killed: only one
 * of them could store a version, and it exists.
 */
async function removeOld(folder: string, prefix: string, latest: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const [ownPrefix, version] = name.split('.');
    const isOld = name.endsWith('.tmp') ? Number(version) <= latest : Number(version) < latest;
    if (ownPrefix === prefix && isOld) await removeIfThere(join(folder, name));
  }
}

/** A new name survives a power failure only once its folder is synced. Windows cannot do that. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Empty for a folder that is not there yet. */
function listNames(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  });
}

async function listVersions(folder: string, prefix: string): Promise<number[]> {
  const versions = (await listNames(folder)).flatMap((name) => {
    const [ownPrefix, version, extension] = name.split('.');
    return ownPrefix === prefix && extension === 'json' ? [Number(version)] : [];
  });
  return versions.sort((a, b) => a - b);
}

function filePath(folder: string, prefix: string, version: number): string {
  return join(folder, `${prefix}.${version}.json`);
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/**
 * Errors that last until the folder is another one. Without hard links, `link` is not permitted.
 */
const permanentCodes = ['EACCES', 'ENOTDIR', 'ENOTSUP', 'EPERM', 'EROFS'];

function storeError(folder: string, cause: unknown): StoreError {
  const isPermanent = cause instanceof NotPrivate || permanentCodes.some((code) => hasCode(cause, code));
  return new StoreError(`the token store in ${folder} failed: ${errorMessage(cause)}`, {
    cause,
    retryable: !isPermanent,
  });
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
