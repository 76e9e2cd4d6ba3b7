import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { findBinary } from './binary.ts';
import { temporaryFolder } from './temporary-folder.ts';

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
