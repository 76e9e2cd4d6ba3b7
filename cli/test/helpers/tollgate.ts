import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { Screen } from '../../src/output/terminal.ts';
import { run } from '../../src/program.ts';

interface Result {
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

/** How a command is followed and ended while it runs. */
interface Running {
  readonly signal?: AbortSignal;
  /** Gets each output of the command. */
  readonly onOutput?: (text: string) => void;
  /** The terminal that output goes to. */
  readonly screen?: Screen;
  /** Enters the code of a sign-in, as a person does. */
  readonly onCode?: (userCode: string) => Promise<unknown>;
}

/** Runs commands with the environment, whose contexts are those of the test. */
export function cli(t: Test, env: NodeJS.ProcessEnv = {}, input = '', running?: Running) {
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
          running?.onOutput?.(text);
        },
        warn(line) {
          errors += `${line}\n`;
          running?.onOutput?.(line);
        },
        hasColours: running?.screen !== undefined,
        ...(running?.screen && { screen: running.screen }),
      },
      env: { TOLLGATE_CONFIG: config, ...env },
      readInput: async () => input,
      interruption: () => running?.signal ?? new AbortController().signal,
      sleep: async () => {
        const [, code = ''] = /enter the code (\S+)/.exec(errors) ?? [];
        await running?.onCode?.(code);
      },
    });
    return { exitCode, output, errors };
  };
}
