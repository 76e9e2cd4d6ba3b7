import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { run } from '../../src/program.ts';

interface Result {
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs commands with the environment, whose contexts are those of the test. */
export function cli(t: Test, env: NodeJS.ProcessEnv = {}, input = '') {
  // A second call must not empty the folder of the test.
  const folder = existsSync(t.testdirName) ? t.testdirName : t.testdir();
  const config = join(folder, 'config.json');
  return async (...args: readonly string[]): Promise<Result> => {
    let output = '';
    let errors = '';
    const exitCode = await run(args, {
      terminal: {
        print(text) {
          output += text;
        },
        warn(line) {
          errors += `${line}\n`;
        },
        isInteractive: false,
      },
      env: { TOLLGATE_CONFIG: config, ...env },
      readInput: async () => input,
    });
    return { exitCode, output, errors };
  };
}
