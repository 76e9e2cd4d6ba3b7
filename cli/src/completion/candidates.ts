import type { Command, Option } from 'commander';

/** A word that may follow, and what it means. */
export interface Candidate {
  readonly word: string;
  readonly description: string;
}

/** Values of options and arguments that depend on the machine, by their names. */
export type Values = Readonly<Record<string, readonly string[]>>;

/**
 * Lists words that may be the last one, after the others. Where nothing is known, the
 * shell completes files.
 */
export function findCandidates(
  program: Command,
  words: readonly string[],
  values: Values = {},
): readonly Candidate[] {
  const { command, option, position } = readWords(program, words.slice(0, -1));
  const last = words.at(-1) ?? '';
  // Bash splits `--option=value` into three words.
  const current = last === '=' ? '' : last;
  return listCandidates(command, { option, position, current, values }).filter(({ word }) =>
    word.startsWith(current),
  );
}

/** Where a line of words has arrived. */
interface Place {
  readonly command: Command;
  /** The option whose value comes next. */
  readonly option: Option | undefined;
  /** Arguments before the next one. */
  readonly position: number;
}

function readWords(program: Command, words: readonly string[]): Place {
  let command = program;
  let option: Option | undefined;
  let position = 0;
  for (const word of words) {
    if (word === '=') continue;
    if (option !== undefined) {
      option = undefined;
      continue;
    }
    if (word.startsWith('-')) {
      const [name = '', value] = word.split('=', 2);
      const found = command.options.find(({ long, short }) => name === long || name === short);
      if (value === undefined && found?.required) option = found;
      continue;
    }
    const next = position === 0 ? command.commands.find((one) => one.name() === word) : undefined;
    if (next === undefined) position += 1;
    else command = next;
  }
  return { command, option, position };
}

interface Situation extends Omit<Place, 'command'> {
  readonly current: string;
  readonly values: Values;
}

function listCandidates(
  command: Command,
  { option, position, current, values }: Situation,
): readonly Candidate[] {
  const toCandidates = (choices: readonly string[] = []) =>
    choices.map((word) => ({ word, description: '' }));
  if (option !== undefined) return toCandidates(option.argChoices ?? values[option.attributeName()]);
  const help = command.createHelp();
  if (current.startsWith('-'))
    return help.visibleOptions(command).map(({ long, short, description }) => ({
      ...{ word: long ?? short ?? '', description },
    }));
  const commands = help.visibleCommands(command);
  if (commands.length > 0 && position === 0)
    return commands.map((one) => ({ word: one.name(), description: one.summary() || one.description() }));
  const argument = command.registeredArguments[position] ?? command.registeredArguments.at(-1);
  return argument === undefined ? [] : toCandidates(argument.argChoices ?? values[argument.name()]);
}
