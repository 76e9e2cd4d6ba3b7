import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of its own for one test resource. */
export interface TemporaryFolder {
  /** Absolute, symlinks resolved, short enough for a unix socket inside it. */
  readonly path: string;
  /** Removes it with all that is in it. Idempotent. */
  remove(): void;
}

/** Makes an empty temporary folder. It is removed when the process exits, if not before. */
export function temporaryFolder(): TemporaryFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'tollgate-')));
  const remove = () => {
    process.off('exit', remove);
    rmSync(path, { recursive: true, force: true });
  };
  process.on('exit', remove);
  return { path, remove };
}
