import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { findBinary } from './processes.ts';

/** A temporary folder of one test resource. */
export interface TemporaryFolder {
  /** Absolute, without symlinks, short enough for a Unix socket inside it. */
  readonly path: string;
  /** Removes it with its content. Idempotent. */
  remove(): void;
}

const removeTimeoutMs = 10_000;

/** Removals of existing folders. They share one listener: Node warns of more than ten. */
const removals = new Set<() => void>();

function removeAll(): void {
  for (const remove of removals) remove();
}

/** Creates an empty temporary folder, which is removed when the process exits at the latest. */
export function temporaryFolder(): TemporaryFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'tollgate-')));
  const remove = () => {
    const deadline = performance.now() + removeTimeoutMs;
    // rmSync stops early without an error when a file disappears meanwhile: a stopped program may
    // still clean up.
    do rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    while (existsSync(path) && performance.now() < deadline);
    removals.delete(remove);
    if (removals.size === 0) process.off('exit', removeAll);
  };
  if (removals.size === 0) process.on('exit', removeAll);
  removals.add(remove);
  return { path, remove };
}

/** Starts a server with a folder of its own, which is removed when the server stops. */
export async function withTemporaryFolder<Server extends { stop(): Promise<void> }>(
  start: (path: string) => Promise<Server>,
): Promise<Server> {
  const folder = temporaryFolder();
  try {
    const server = await start(folder.path);
    const stop = async () => {
      await server.stop();
      folder.remove();
    };
    return { ...server, stop };
  } catch (error) {
    folder.remove();
    throw error;
  }
}

/** A folder that is removed when the test ends. */
export interface TextFolder {
  readonly path: string;
  /** Writes a file, and creates its folders. */
  write(name: string, text: string): void;
  /** Creates a pipe without a writer. */
  makePipe(name: string): void;
  /** Changes a link atomically, as Kubernetes and `ln -sfn` followed by `mv -T` do. */
  swapLink(name: string, target: string): void;
}

/** Creates a folder for a test. */
export function makeTextFolder(t: Test): TextFolder {
  const { path, remove } = temporaryFolder();
  t.teardown(remove);
  return {
    path,
    write(name, text) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), text);
    },
    makePipe(name) {
      execFileSync(findBinary('mkfifo'), [join(path, name)]);
    },
    swapLink(name, target) {
      symlinkSync(target, join(path, `${name}.new`));
      renameSync(join(path, `${name}.new`), join(path, name));
    },
  };
}
