import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreError } from '../errors.ts';
import { errorMessage } from '../text.ts';
import type { SetOutcome, TokenRecord, TokenStore } from '../tokens/token-store.ts';

/** Options of a file store. */
export interface FileTokenStoreOptions {
  /** A folder for this store alone. Created if missing, readable only by its owner. */
  readonly folder: string;
}

const conflict: SetOutcome = { ok: false, reason: 'conflict' };

/** Attempts to read while newer versions replace the listed one. */
const maxReadAttempts = 20;

/**
 * A store in files that many processes of one machine can share, without locks: each version is a
 * file (`<hash of the key>.<version>.json`, mode 0600) that is written to a temporary name, synced,
 * and linked, which succeeds only for the first process. The file system must support hard links.
 *
 * @throws StoreError from its methods if the folder cannot be read or written.
 */
export function fileTokenStore({ folder }: FileTokenStoreOptions): TokenStore {
  return {
    get: (key) =>
      guard(folder, async () => {
        const latest = await readLatest(folder, hashKey(key));
        return latest && { record: latest.record, version: String(latest.version) };
      }),
    set: (key, record, expectedVersion) =>
      guard(folder, () => compareAndSwap(folder, hashKey(key), record, expectedVersion)),
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
  if (!(await linkInto(folder, filePath(folder, prefix, next), JSON.stringify(record)))) return conflict;
  const versions = await listVersions(folder, prefix);
  // Another process was two versions ahead and had removed the version that was just created again.
  const overtaken = (versions.at(-1) ?? next) > next;
  if (overtaken) return conflict;
  for (const version of versions) if (version < next) await removeIfThere(filePath(folder, prefix, version));
  return { ok: true, version: String(next) };
}

/** Creates a file atomically, unless it exists. */
async function linkInto(folder: string, path: string, content: string): Promise<boolean> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const aside = join(folder, `.${randomUUID()}.tmp`);
  const file = await open(aside, 'wx', 0o600);
  try {
    await file.writeFile(content);
    // The successor of a spent refresh token must survive a power failure.
    await file.sync();
    await file.close();
    await link(aside, path);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await file.close();
    await removeIfThere(aside);
  }
}

async function listVersions(folder: string, prefix: string): Promise<number[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  });
  const versions = names.flatMap((name) => {
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

async function guard<T>(folder: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    throw new StoreError(`the token store in ${folder} failed: ${errorMessage(cause)}`, {
      cause,
      retryable: true,
    });
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
