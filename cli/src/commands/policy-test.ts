import { watchFiles } from '@tollgate/kit/file-watch';
import type { Command } from 'commander';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printJson } from '../output/terminal.ts';
import { countResults, printResults } from '../policy-tests/report.ts';
import { type FileResult, runTestFiles } from '../policy-tests/run-files.ts';
import { type Environment, type LocalOptions, localCommand } from './command.ts';

interface TestOptions extends LocalOptions {
  readonly watch?: true;
}

/** `tollgate policy test`: requests of callers, and the decisions that policies make. */
export function testCommand(environment: Environment): Command {
  const { terminal, readInput } = environment;
  return localCommand('test', 'Test which decisions policies make, without a running service.', [
    'tollgate policy test policies/',
    'tollgate policy test orders.test.yaml --watch',
  ])
    .exitsWithFinding('a test fails')
    .argument('<files...>', 'Files of tests, folders, or - for standard input.')
    .option('--watch', 'Test again whenever a file changes.')
    .action(async (paths: readonly string[], options: TestOptions) => {
      if (options.watch) return watchTests(environment, paths);
      const files = await runTestFiles(paths, readInput);
      if (files.length === 0) throw new CommandFailure(`no files of tests in ${paths.join(', ')}`);
      const { passed, failed } = countResults(files);
      if (options.json) printJson(terminal, { passed, failed, files });
      else printResults(terminal, files);
      if (failed > 0) throw new CommandFailure('', exitCodes.unhealthy);
    });
}

async function watchTests({ terminal, interruption }: Environment, paths: readonly string[]): Promise<void> {
  if (paths.includes('-')) throw new CommandFailure('--watch needs files: standard input does not change');
  const signal = interruption();
  let changed = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => stopped.resolve(), { once: true });
  while (!signal.aborted) {
    const policies = await runOnce(terminal, paths);
    // Files that tests read may be others after a change.
    const watch = await watchFiles({ paths: [...paths, ...policies], onChange: () => changed.resolve() });
    terminal.warn('Waiting for changes. Ctrl-C ends.');
    await Promise.race([changed.promise, stopped.promise]);
    watch.close();
    changed = Promise.withResolvers();
  }
}

/** Returns the files and folders that the tests have read. */
async function runOnce(
  terminal: Environment['terminal'],
  paths: readonly string[],
): Promise<readonly string[]> {
  let files: readonly FileResult[] = [];
  try {
    files = await runTestFiles(paths, async () => '');
    printResults(terminal, files);
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    terminal.warn(error.message);
  }
  return files.flatMap(({ policies }) => policies);
}
