import { createHash, type Hash } from 'node:crypto';
import { type BigIntStats, type FSWatcher, watch as watchDirectory } from 'node:fs';
import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isMissingFile } from './errors.ts';
import type { Logger } from './logger.ts';

/** Files to watch, and intervals. */
export type WatchFilesOptions = {
  /** Files, directories (with everything below them) or links to such; they need not exist yet. */
  readonly paths: readonly string[];
  /** Called once per change, after the files were stable for `debounceMs`; calls do not overlap. */
  readonly onChange: () => Promise<void> | void;
  /**
   * Reports only changes of link targets (the paths, their parents, links below them), and a path
   * that is replaced as a whole. Files edited in place are ignored. Default false.
   */
  readonly linksOnly?: boolean;
  /** Default 50. */
  readonly debounceMs?: number;
  /** Interval of polling, for events that are lost. Default 10,000. */
  readonly pollMs?: number;
  readonly logger?: Logger;
  /** `fs.watch`; replaced in tests without events. */
  readonly watch?: typeof watchDirectory;
};

/**
 * Files that change all the time, such as a log in the folder, are reported after this many times
 * `debounceMs`.
 */
const maxRounds = 20;

/**
 * Watches files by events and by polling, and reports each change once.
 *
 * Events say when to look, a fingerprint (identity, size, times, links) says whether anything
 * changed. So a file replaced by renaming, a swapped link (`..data` of a Kubernetes volume), a
 * recreated directory and a lost event are all noticed. Resolves when the current state is known;
 * later changes are reported. Does not keep the process alive.
 */
export async function watchFiles(options: WatchFilesOptions): Promise<FileWatch> {
  const watch = new FileWatch(options);
  await watch.start();
  return watch;
}

/** A running watch. */
export class FileWatch {
  readonly #options: WatchFilesOptions;
  readonly #paths: readonly string[];
  readonly #debounceMs: number;
  readonly #closing = new AbortController();
  readonly #events: DirectoryEvents;
  #hint = Promise.withResolvers<void>();

  constructor(options: WatchFilesOptions) {
    const { paths, debounceMs = 50, logger, watch = watchDirectory } = options;
    this.#options = options;
    this.#paths = paths.map((path) => resolve(path));
    this.#debounceMs = debounceMs;
    this.#events = new DirectoryEvents({ onEvent: () => this.#hint.resolve(), logger, watch });
  }

  async start(): Promise<void> {
    // Events first: a change during the look triggers the next one.
    this.#events.follow((await Promise.all(this.#paths.map(findParent))).flat());
    const initial = await this.#look();
    if (initial.cut)
      this.#options.logger?.warn(
        { paths: this.#paths },
        'too many files to watch, some changes may be missed',
      );
    // The events of the directories just found began after they were read: look again at once.
    this.#hint.resolve();
    void this.#follow(initial);
  }

  /** Ends the watch; `onChange` is not called again. */
  close(): void {
    this.#closing.abort();
    this.#events.close();
  }

  async #follow(initial: FileFingerprint): Promise<void> {
    const { pollMs = 10_000 } = this.#options;
    let known = initial;
    while (!this.#closing.signal.aborted) {
      await Promise.race([this.#hint.promise, this.#pause(pollMs)]);
      this.#hint = Promise.withResolvers();
      const seen = await this.#look();
      if (seen.digest === known.digest) {
        // An irrelevant event: many of them must not cause as many looks.
        await this.#pause(this.#debounceMs);
        continue;
      }
      known = await this.#lookUntilStable(seen);
      await this.#notify();
    }
  }

  async #look(): Promise<FileFingerprint> {
    const fingerprint = await fingerprintFiles(this.#paths, this.#options.linksOnly ?? false);
    const parents = await Promise.all(this.#paths.map(findParent));
    // Once this is closed, nothing follows: a watch opened now would never be closed.
    if (!this.#closing.signal.aborted) this.#events.follow([...parents.flat(), ...fingerprint.directories]);
    return fingerprint;
  }

  /** Looks until two consecutive looks agree. */
  async #lookUntilStable(first: FileFingerprint): Promise<FileFingerprint> {
    let last = first;
    for (let round = 0; round < maxRounds; round += 1) {
      await this.#pause(this.#debounceMs);
      const next = await this.#look();
      if (next.digest === last.digest) break;
      last = next;
    }
    return last;
  }

  async #notify(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const { onChange, logger } = this.#options;
    try {
      await onChange();
    } catch (err) {
      logger?.error({ err, paths: this.#paths }, 'cannot handle changed files');
    }
  }

  async #pause(ms: number): Promise<void> {
    // Rejects when closed, which ends the pause as well.
    await delay(ms, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
  }
}

/** A directory to follow. */
type FollowedDirectory = {
  readonly path: string;
  /** Changes when another directory is at the path. */
  readonly identity: string;
  /** Limits events to this name in it; all when absent. */
  readonly name?: string;
};

/**
 * The directory that contains a path: its events report that the path was created, replaced, or
 * leads elsewhere.
 */
async function findParent(path: string): Promise<FollowedDirectory[]> {
  const parent = dirname(path);
  const stats = await stat(parent, { bigint: true }).catch(() => undefined);
  if (!stats) return [];
  const entry = await lstat(path).catch(() => undefined);
  const identity = directoryIdentity(stats);
  // A link may lead to a neighbour that is swapped in turn: tls.crt → ..data/tls.crt.
  return [
    entry?.isSymbolicLink() ? { path: parent, identity } : { path: parent, identity, name: basename(path) },
  ];
}

/**
 * The system allows a user a few thousand watches in all processes; changes in further directories
 * are found by polling.
 */
const maxDirectories = 256;

type DirectoryEventsOptions = {
  readonly onEvent: () => void;
  readonly logger: Logger | undefined;
  readonly watch: typeof watchDirectory;
};

/** Events of a changing set of directories. They may be lost or duplicated: only a hint to look. */
class DirectoryEvents {
  readonly #options: DirectoryEventsOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  #warned = false;

  constructor(options: DirectoryEventsOptions) {
    this.#options = options;
  }

  /** Follows exactly these directories from now on. */
  follow(directories: readonly FollowedDirectory[]): void {
    const wanted = new Map(
      directories
        .slice(0, maxDirectories)
        .map((directory) => [`${directory.identity} ${directory.name ?? ''} ${directory.path}`, directory]),
    );
    for (const [key, watcher] of this.#watchers) {
      if (wanted.has(key)) continue;
      watcher.close();
      this.#watchers.delete(key);
    }
    for (const [key, directory] of wanted) if (!this.#watchers.has(key)) this.#open(key, directory);
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #open(key: string, { path, name: wanted }: FollowedDirectory): void {
    const { watch, onEvent } = this.#options;
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => {
        if (wanted === undefined || name === null || name === wanted) onEvent();
      });
      watcher.on('error', (err) => this.#drop(key, err));
      this.#watchers.set(key, watcher);
    } catch (err) {
      this.#warnOnce(err);
    }
  }

  #drop(key: string, err: unknown): void {
    this.#watchers.get(key)?.close();
    this.#watchers.delete(key);
    this.#warnOnce(err);
    this.#options.onEvent();
  }

  #warnOnce(err: unknown): void {
    // A directory that is gone needs no warning: its parent is followed, and polling looks for it.
    if (this.#warned || isMissingFile(err)) return;
    this.#warned = true;
    this.#options.logger?.warn({ err }, 'directory events are not available, polling for changes');
  }
}

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
function directoryIdentity(stats: BigIntStats): string {
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
