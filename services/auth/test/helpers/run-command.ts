import { join } from 'node:path';
import { runProgram } from '@tollgate/testkit/processes';

/** The program of the service. */
export const program = join(import.meta.dirname, '../../src/main.ts');

/** Runs a command in a process of its own until it ends, with nothing but `env` set. */
export function runCommand(args: readonly string[], options: Parameters<typeof runProgram>[2]) {
  return runProgram(program, args, options);
}
