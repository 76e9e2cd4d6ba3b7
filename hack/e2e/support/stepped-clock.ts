import { join } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { ServerProcess } from '@tollgate/testkit/processes';
import type { ServiceSettings } from '@tollgate/testkit/services';
import type { Test } from 'tap';

/** The wall clock of a service, which jumps as when a machine resumes or NTP corrects it. */
export interface AdjustableClock {
  /** Settings of the service. */
  readonly settings: ServiceSettings;
  /** Adds to its time; after a restart, too. */
  step(process: ServerProcess, byMs: number): void;
}

/** Timers and `performance.now()` do not jump, as on a real machine. */
export function makeAdjustableClock(t: Test): AdjustableClock {
  const folder = makeTextFolder(t);
  let offsetMs = 0;
  folder.write('offset', '0');
  return {
    settings: {
      NODE_OPTIONS: `--import=${import.meta.resolve('./stepped-date.ts')}`,
      CLOCK_OFFSET_FILE: join(folder.path, 'offset'),
    },
    step({ pid }, byMs) {
      offsetMs += byMs;
      folder.write('offset', String(offsetMs));
      process.kill(pid, 'SIGUSR2');
    },
  };
}
