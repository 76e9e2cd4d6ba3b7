import { createHash, type Hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** What files look like from outside, at one moment. */
export type FileFingerprint = {
  /** Differs when anything that counts has changed: names, identities, sizes, times, where links lead. */
  readonly digest: string;
  /** Every directory looked into, with the identity of what is there now. */
  readonly directories: readonly { readonly path: string; readonly identity: string }[];
  /** Whether there was more than {@link mostEntries}, which was left out. */
  readonly cut: boolean;
};

/** A rule folder has hundreds of files; a folder with more than this was not meant to be watched. */
const mostEntries = 20_000;

type Walk = {
  readonly hash: Hash;
  readonly linksOnly: boolean;
  readonly directories: { path: string; identity: string }[];
  left: number;
};

/**
 * Takes the fingerprint of files and, recursively, directories. A path that is a link is followed, links below it are not.
 * With `linksOnly` only where links lead counts, and what the paths themselves are. A path that cannot be read is part of the
 * fingerprint as such.
 */
export async function fingerprintFiles(
  paths: readonly string[],
  linksOnly: boolean,
): Promise<FileFingerprint> {
  const walk: Walk = { hash: createHash('sha256'), linksOnly, directories: [], left: mostEntries };
  for (const path of paths) await addPath(walk, path);
  return { digest: walk.hash.digest('base64'), directories: walk.directories, cut: walk.left <= 0 };
}

/** One of the paths asked for: identified even with `linksOnly`, and followed. */
async function addPath(walk: Walk, path: string): Promise<void> {
  // Resolves the links in the parents as well: /a/current/config changes when /a/current does.
  record(walk, path, await attempt(() => realpath(path)));
  const stats = await attempt(() => stat(path, { bigint: true }));
  if (typeof stats === 'string') return record(walk, path, stats);
  if (!stats.isDirectory()) return record(walk, path, walk.linksOnly ? identityOf(stats) : lookOf(stats));
  return await addDirectory(walk, path, stats);
}

async function addDirectory(walk: Walk, path: string, stats: BigIntStats): Promise<void> {
  record(walk, path, identityOf(stats));
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
  if (!walk.linksOnly) record(walk, path, lookOf(stats));
}

async function addLink(walk: Walk, path: string): Promise<void> {
  record(walk, path, await attempt(() => readlink(path)));
  const target = await attempt(() => stat(path, { bigint: true }));
  if (typeof target === 'string') return record(walk, path, target);
  record(walk, path, walk.linksOnly ? identityOf(target) : lookOf(target));
}

/** The change time too: it tells of a chmod, and of an edit that set the modification time back. */
function lookOf(stats: BigIntStats): string {
  return `${identityOf(stats)} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
}

function identityOf(stats: BigIntStats): string {
  return `${stats.dev}:${stats.ino}`;
}

/** Tells a directory from one made later at the same path, which may have got the same inode; for events, not for the digest. */
export function directoryIdentity(stats: BigIntStats): string {
  return `${identityOf(stats)} ${stats.birthtimeNs}`;
}

function record(walk: Walk, path: string, look: string): void {
  walk.hash.update(`${path}\0${look}\0`);
}

/** Answers what the call does, or the code of its error: the file system changes while it is looked at. */
async function attempt<T>(call: () => Promise<T>): Promise<T | string> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return String(error.code);
    throw error;
  }
}
