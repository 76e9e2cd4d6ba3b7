import { type FSWatcher, watch as watchDirectory } from 'node:fs';
import type { Logger } from './logger.ts';

/** A directory of which events are wanted. */
export type FollowedDirectory = {
  readonly path: string;
  /** Changes when another directory is at the path. */
  readonly identity: string;
  /** Only events of this name in it; all when absent. */
  readonly name?: string;
};

/** Events of a changing set of directories. They may be lost or doubled: a hint to look, no more. */
export type DirectoryEvents = {
  /** Follows exactly these from now on. */
  follow(directories: readonly FollowedDirectory[]): void;
  close(): void;
};

/** What directory events need. */
export type DirectoryEventsDeps = {
  readonly onEvent: () => void;
  readonly logger?: Logger;
  /** `fs.watch`. */
  readonly watch?: typeof watchDirectory;
};

/** The system allows a user some thousand watches for all processes; what goes beyond is noticed by polling. */
const mostDirectories = 256;

/** Creates events that follow no directory yet. */
export function createDirectoryEvents(deps: DirectoryEventsDeps): DirectoryEvents {
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
