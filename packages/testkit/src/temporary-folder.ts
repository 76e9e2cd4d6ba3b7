import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
