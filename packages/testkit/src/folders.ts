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

/** A folder of its own for one test resource. */
export interface TemporaryFolder {
  /** Absolute, symlinks resolved, short enough for a unix socket inside it. */
  readonly path: string;
  /** Removes it with all that is in it. Idempotent. */
  remove(): void;
}

/** A program that was using the folder has long ended by then. */
const removeTimeoutMs = 10_000;

/** Makes an empty temporary folder. It is removed when the process exits, if not before. */
export function temporaryFolder(): TemporaryFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'tollgate-')));
  const remove = () => {
    const deadline = performance.now() + removeTimeoutMs;
    // rmSync ends half-way, and without an error, when a file vanishes under it: a program that was stopped may still tidy up.
    do rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    while (existsSync(path) && performance.now() < deadline);
    process.off('exit', remove);
  };
  process.on('exit', remove);
  return { path, remove };
}

/** A folder that is removed when the test ends. */
export interface TextFolder {
  readonly path: string;
  /** Writes a file, and the folders it lies in. */
  write(name: string, text: string): void;
  /** Makes a pipe that nobody writes to. */
  makePipe(name: string): void;
  /** Makes a link lead elsewhere in one step, as Kubernetes and `ln -sfn` followed by `mv -T` do. */
  swapLink(name: string, target: string): void;
}

/** Makes one. */
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
