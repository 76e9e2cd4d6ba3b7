import { createHash, type Hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Metadata of files at one moment. */
export type FileFingerprint = {
  /** Changes with names, identities, sizes, times and link targets. */
  readonly digest: string;
  /** Every directory that was read, with its identity. */
  readonly directories: readonly { readonly path: string; readonly identity: string }[];
  /** Whether there were more than {@link maxEntries}; the rest was ignored. */
  readonly cut: boolean;
};

/** A rule folder has hundreds of files; a larger one is configured by mistake. */
const maxEntries = 20_000;

type Walk = {
  readonly hash: Hash;
  readonly linksOnly: boolean;
  readonly directories: { path: string; identity: string }[];
  left: number;
};

/**
 * Takes the fingerprint of files and, recursively, directories. A path that is a link is followed,
 * links below it are not. With `linksOnly`, only link targets and the identity of the paths
 * themselves count. A path that cannot be read contributes its error code.
 */
export async function fingerprintFiles(
  paths: readonly string[],
  linksOnly: boolean,
): Promise<FileFingerprint> {
  const walk: Walk = { hash: createHash('sha256'), linksOnly, directories: [], left: maxEntries };
  for (const path of paths) await addPath(walk, path);
  return { digest: walk.hash.digest('base64'), directories: walk.directories, cut: walk.left <= 0 };
}

/** A top-level path is identified even with `linksOnly`, and followed. */
async function addPath(walk: Walk, path: string): Promise<void> {
  // Resolves the links in the parents as well: /a/current/config changes when /a/current does.
  record(walk, path, await attempt(() => realpath(path)));
  const stats = await attempt(() => stat(path, { bigint: true }));
  if (typeof stats === 'string') return record(walk, path, stats);
  if (!stats.isDirectory())
    return record(walk, path, walk.linksOnly ? fileIdentity(stats) : describeFile(stats));
  return await addDirectory(walk, path, stats);
}

async function addDirectory(walk: Walk, path: string, stats: BigIntStats): Promise<void> {
  record(walk, path, fileIdentity(stats));
  walk.directories.push({ path, identity: directoryIdentity(stats) });
  const names = await attempt(() => readdir(path));
  if (typeof names === 'string') return record(walk, path, names);
  for (const name of names.sort()) {
    walk.left -= 1;
    if (walk.left <= 0) return;
    await addEntry(walk, join(path, name));
  }
}

async function addEntry(walk: Walk, path: string): Promise<void> {
  const stats = await attempt(() => lstat(path, { bigint: true }));
  if (typeof stats === 'string') return record(walk, path, stats);
  if (stats.isDirectory()) return await addDirectory(walk, path, stats);
  if (stats.isSymbolicLink()) return await addLink(walk, path);
  if (!walk.linksOnly) record(walk, path, describeFile(stats));
}

async function addLink(walk: Walk, path: string): Promise<void> {
  record(walk, path, await attempt(() => readlink(path)));
  const target = await attempt(() => stat(path, { bigint: true }));
  if (typeof target === 'string') return record(walk, path, target);
  record(walk, path, walk.linksOnly ? fileIdentity(target) : describeFile(target));
}

/** Includes the change time: it shows a chmod, and an edit that reset the modification time. */
function describeFile(stats: BigIntStats): string {
  return `${fileIdentity(stats)} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
}

function fileIdentity(stats: BigIntStats): string {
  return `${stats.dev}:${stats.ino}`;
}

/**
 * Distinguishes directories created at the same path, which may reuse the inode; for events, not
 * for the digest.
 */
export function directoryIdentity(stats: BigIntStats): string {
  return `${fileIdentity(stats)} ${stats.birthtimeNs}`;
}

function record(walk: Walk, path: string, description: string): void {
  walk.hash.update(`${path}\0${description}\0`);
}

/** The result of the call, or the code of its error: the file system may change meanwhile. */
async function attempt<T>(call: () => Promise<T>): Promise<T | string> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return String(error.code);
    throw error;
  }
}
