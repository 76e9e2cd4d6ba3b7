import { join } from 'node:path';
import { type ProgramResult, runProgram } from '@tollgate/testkit/processes';

const sources = join(import.meta.dirname, '../../src');

/** Runs one of the service's programs, named from `src`, in a process of its own until it ends. */
export function runCommand(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ProgramResult> {
  return runProgram(join(sources, program), args, { env });
}
