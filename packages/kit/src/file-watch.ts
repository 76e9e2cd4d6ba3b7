import { type FSWatcher, type watch, watch as watchDirectory } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { directoryIdentity, type FileFingerprint, fingerprintFiles } from './file-fingerprint.ts';
import type { Logger } from './logger.ts';

/** A directory of which events are wanted. */
type FollowedDirectory = {
  readonly path: string;
  /** Changes when another directory is at the path. */
  readonly identity: string;
  /** Only events of this name in it; all when absent. */
  readonly name?: string;
};

/** Events of a changing set of directories. They may be lost or doubled: a hint to look, no more. */
type DirectoryEvents = {
  /** Follows exactly these from now on. */
  follow(directories: readonly FollowedDirectory[]): void;
  close(): void;
};

/** What directory events need. */
type DirectoryEventsDeps = {
  readonly onEvent: () => void;
  readonly logger?: Logger;
  /** `fs.watch`. */
  readonly watch?: typeof watchDirectory;
};

/** The system allows a user some thousand watches for all processes; what goes beyond is noticed by polling. */
const mostDirectories = 256;

/** Creates events that follow no directory yet. */
function createDirectoryEvents(deps: DirectoryEventsDeps): DirectoryEvents {
  const { onEvent, logger, watch = watchDirectory } = deps;
  const watchers = new Map<string, FSWatcher>();
  let warned = false;

  function open(key: string, directory: FollowedDirectory): void {
    try {
      const watcher = watch(directory.path, { persistent: false }, (_, name) => {
        if (directory.name === undefined || name === null || name === directory.name) onEvent();
      });
      watcher.on('error', (err) => drop(key, err));
      watchers.set(key, watcher);
    } catch (err) {
      warnOnce(err);
    }
  }

  function drop(key: string, err: unknown): void {
    watchers.get(key)?.close();
    watchers.delete(key);
    warnOnce(err);
    onEvent();
  }

  function warnOnce(err: unknown): void {
    // A directory that has gone is no news: its parent is followed, and polling looks for it.
    if (warned || (err instanceof Error && 'code' in err && err.code === 'ENOENT')) return;
    warned = true;
    logger?.warn({ err }, 'directory events are not available; changes are noticed by polling');
  }

  return {
    follow(directories) {
      const wanted = new Map(
        directories
          .slice(0, mostDirectories)
          .map((directory) => [`${directory.identity} ${directory.name ?? ''} ${directory.path}`, directory]),
      );
      for (const [key, watcher] of watchers) {
        if (wanted.has(key)) continue;
        watcher.close();
        watchers.delete(key);
      }
      for (const [key, directory] of wanted) if (!watchers.has(key)) open(key, directory);
    },
    close() {
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

/** A watch that goes on until it is closed. */
export type FileWatch = {
  /** Ends the watch; `onChange` is not called any more. */
  close(): void;
};

/** What to watch, and whom to tell. */
export type WatchFilesOptions = {
  /** Files, directories (with everything below them) or links to such; they need not exist yet. */
  readonly paths: readonly string[];
  /** Called once for each change, when the files have been still for `debounceMs`; the next call waits until it has ended. */
  readonly onChange: () => Promise<void> | void;
  /**
   * Only a change of where a link leads counts (the paths, their parents, links below them), and a path that is replaced as a whole.
   * Files edited in place do not. Default false.
   */
  readonly linksOnly?: boolean;
  /** Default 50. */
  readonly debounceMs?: number;
  /** How often to look without having been told. Default 10,000. */
  readonly pollMs?: number;
  readonly logger?: Logger;
  /** `fs.watch`; given by tests that take the events away. */
  readonly watch?: typeof watch;
};

/** Files that never rest (a log in the folder) are taken as they are after this many times `debounceMs`. */
const mostRounds = 20;

/**
 * Watches files by events and by polling, and tells of each change once.
 *
 * Events say when to look, a fingerprint (identity, size, times, links) says whether there is anything to tell. So a file
 * replaced by renaming, a swapped link (`..data` of a Kubernetes volume), a directory made anew and an event that was lost are all noticed.
 * Resolves when the present state is known: what changes after that is told. Keeps no process alive.
 */
export async function watchFiles(options: WatchFilesOptions): Promise<FileWatch> {
  const { onChange, linksOnly = false, debounceMs = 50, pollMs = 10_000, logger } = options;
  const paths = options.paths.map((path) => resolve(path));
  const closing = new AbortController();
  let hint = Promise.withResolvers<void>();
  const events = createDirectoryEvents({
    onEvent: () => hint.resolve(),
    ...(logger && { logger }),
    ...(options.watch && { watch: options.watch }),
  });

  async function look(): Promise<FileFingerprint> {
    const fingerprint = await fingerprintFiles(paths, linksOnly);
    const parents = await Promise.all(paths.map(parentOf));
    // Not once closed: a watch opened now would never be closed.
    if (!closing.signal.aborted) events.follow([...parents.flat(), ...fingerprint.directories]);
    return fingerprint;
  }

  /** Looks until two looks in a row agree. */
  async function lookUntilStill(first: FileFingerprint): Promise<FileFingerprint> {
    let last = first;
    for (let round = 0; round < mostRounds; round += 1) {
      await pause(debounceMs);
      const next = await look();
      if (next.digest === last.digest) break;
      last = next;
    }
    return last;
  }

  async function follow(initial: FileFingerprint): Promise<void> {
    let known = initial;
    while (!closing.signal.aborted) {
      await Promise.race([hint.promise, pause(pollMs)]);
      hint = Promise.withResolvers();
      const seen = await look();
      if (seen.digest === known.digest) {
        // An event of no interest: many of them must not become as many looks.
        await pause(debounceMs);
        continue;
      }
      known = await lookUntilStill(seen);
      await tell();
    }
  }

  async function tell(): Promise<void> {
    if (closing.signal.aborted) return;
    try {
      await onChange();
    } catch (err) {
      logger?.error({ err, paths }, 'change of files not handled');
    }
  }

  async function pause(ms: number): Promise<void> {
    // Rejects when closed, which is the end of the pause as well.
    await delay(ms, undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
  }

  // Events first: what happens during the look is a hint for the next one.
  events.follow((await Promise.all(paths.map(parentOf))).flat());
  const initial = await look();
  if (initial.cut) logger?.warn({ paths }, 'too many files to watch; some changes will go unnoticed');
  // The events of the directories just found began after they were read: look again at once.
  hint.resolve();
  void follow(initial);
  return {
    close() {
      closing.abort();
      events.close();
    },
  };
}

/** The directory that holds a path: an event there tells that the path was made, replaced, or leads elsewhere. */
async function parentOf(path: string): Promise<FollowedDirectory[]> {
  const parent = dirname(path);
  const stats = await stat(parent, { bigint: true }).catch(() => undefined);
  if (!stats) return [];
  const entry = await lstat(path).catch(() => undefined);
  const identity = directoryIdentity(stats);
  // A link may lead to a neighbour that is swapped in its turn: tls.crt → ..data/tls.crt.
  return [
    entry?.isSymbolicLink() ? { path: parent, identity } : { path: parent, identity, name: basename(path) },
  ];
}
