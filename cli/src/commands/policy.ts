import type { Command } from 'commander';
import { type Environment, group } from './command.ts';
import { checkCommand } from './policy-check.ts';
import { convertCommand } from './policy-convert.ts';
import { diffCommand } from './policy-diff.ts';
import { testCommand } from './policy-test.ts';

/** `tollgate policy`: files with policies and limits, without a running service. */
export function policyCommands(environment: Environment): Command {
  return group('policy', 'Check, test, compare and convert files with policies and limits.', [
    checkCommand(environment),
    testCommand(environment),
    diffCommand(environment),
    convertCommand(environment),
  ]);
}
