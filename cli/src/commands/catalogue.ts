import type { Command } from 'commander';
import { RunnableCommand } from './command.ts';

/** A command that can be run, with the words that name it. */
export interface CatalogueEntry {
  /** `users ban`. */
  readonly path: string;
  readonly command: RunnableCommand;
}

/** All commands that can be run. README.md has a row for each. */
export function listCommands(command: Command, parents: readonly string[] = []): readonly CatalogueEntry[] {
  return command.commands.flatMap((one) => {
    const words = [...parents, one.name()];
    return one instanceof RunnableCommand
      ? [{ path: words.join(' '), command: one }]
      : listCommands(one, words);
  });
}
