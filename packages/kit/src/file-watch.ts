import { type FSWatcher, watch as watchDirectory } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { directoryIdentity, type FileFingerprint, fingerprintFiles } from './file-fingerprint.ts';
import type { Logger } from './logger.ts';

/** What to watch, and how. */
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
    // Not once closed: a watch opened now would never be closed.
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
  /** Only events of this name in it; all when absent. */
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
    if (this.#warned || (err instanceof Error && 'code' in err && err.code === 'ENOENT')) return;
    this.#warned = true;
    this.#options.logger?.warn({ err }, 'directory events are not available, polling for changes');
  }
}
