import { Argument, type Command } from 'commander';
import { findCandidates } from '../completion/candidates.ts';
import { completionScripts } from '../completion/scripts.ts';
import { contextFilePath, readContexts } from '../connection/contexts.ts';
import { bareCommand, type Environment } from './command.ts';

type Shell = keyof typeof completionScripts;

/** `tollgate complete`: completion for shells. */
export function completeCommand({ terminal }: Environment): Command {
  const shells = Object.keys(completionScripts) as Shell[]; // of exactly these keys
  return bareCommand('complete', 'Print what a shell loads to complete commands, options and values.', [
    'source <(tollgate complete bash)',
    'source <(tollgate complete zsh)',
    'tollgate complete fish | source',
  ])
    .addArgument(new Argument('<shell>', 'The shell.').choices(shells))
    .action((shell: Shell) => terminal.print(completionScripts[shell]));
}

/** Prints what may follow the words, a line for each. The scripts of shells ask for it. */
export async function printCandidates(
  { env, terminal }: Environment,
  program: Command,
  words: readonly string[],
): Promise<void> {
  const { contexts } = await readContexts(contextFilePath(env)).catch(() => ({ contexts: {} }));
  for (const { word, description } of findCandidates(program, words, { context: Object.keys(contexts) }))
    terminal.print(`${word}\t${description}\n`);
}
