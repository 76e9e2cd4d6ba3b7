import { formatDuration, parseDuration } from '@tollgate/kit/time';
import type { Sleep } from '@tollgate/oauth2-client/device';
import { Command, InvalidArgumentError } from 'commander';
import type { Source } from '../connection/connect.ts';
import { CommandFailure } from '../failure.ts';
import type { Terminal } from '../output/terminal.ts';

/** Input and output of commands. */
export interface Environment {
  readonly terminal: Terminal;
  readonly env: NodeJS.ProcessEnv;
  /** Text of standard input, for secrets. */
  readonly readInput: () => Promise<string>;
  /** Aborts on Ctrl-C from now on. */
  readonly interruption: () => AbortSignal;
  /** Waits between two polls of a sign-in. Tests have their own. */
  readonly sleep?: Sleep;
}

/** Options of commands that need no service. */
export interface LocalOptions {
  readonly json?: true;
}

/** Options of commands that ask services. */
export interface CommonOptions extends LocalOptions {
  readonly context?: string;
}

/** A command that can be run, with what its help and the table of README.md say of it. */
export class RunnableCommand extends Command {
  readonly examples: readonly string[];
  #finding: string | undefined;

  constructor(name: string, summary: string, examples: readonly string[]) {
    super(name);
    this.examples = examples;
    this.description(summary).addHelpText('after', () => this.#endOfHelp());
  }

  /** The meaning of exit code 3. */
  get finding(): string | undefined {
    return this.#finding;
  }

  /** Says that the command checks something, and when its exit code is 3. */
  exitsWithFinding(finding: string): this {
    this.#finding = finding;
    return this;
  }

  #endOfHelp(): string {
    const lines = this.examples.map((line) => `  $ ${line}\n`).join('');
    const finding = this.#finding === undefined ? '' : `; 3 ${this.#finding}`;
    return `\nExamples:\n${lines}\nExit codes: 0 done; 1 refused or not reached; 2 wrong arguments${finding}.`;
  }
}

/** A command without options that others have. */
export function bareCommand(name: string, summary: string, examples: readonly string[]): RunnableCommand {
  return new RunnableCommand(name, summary, examples);
}

/** A command that needs no service. */
export function localCommand(name: string, summary: string, examples: readonly string[]): RunnableCommand {
  return bareCommand(name, summary, examples).option('--json', 'Print the result as JSON.');
}

/** A command that asks services. */
export function command(name: string, summary: string, examples: readonly string[]): RunnableCommand {
  return localCommand(name, summary, examples).option(
    '--context <name>',
    'Context of the configuration. Default: the current one.',
  );
}

/** Options of lists that have pages. */
export interface ListOptions extends CommonOptions {
  readonly limit: string;
  readonly cursor?: string;
}

/** A command that lists one page. */
export function pagedCommand(name: string, summary: string, examples: readonly string[]): RunnableCommand {
  return command(name, summary, examples)
    .option('--limit <number>', 'Most items of a page.', '50')
    .option('--cursor <cursor>', 'Start of the next page, which the previous one prints.');
}

/** The part of a query that all lists with pages have. */
export function toPageQuery({ limit, cursor }: ListOptions): { limit: string; cursor?: string } {
  return { limit, ...(cursor !== undefined && { cursor }) };
}

/** Parses a duration into milliseconds. */
export function parseInterval(minMs: number, maxMs: number): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text) ?? 0;
    if (ms < minMs || ms > maxMs)
      throw new InvalidArgumentError(
        `It is a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}, such as 5s.`,
      );
    return ms;
  };
}

/** Says how to list the next page, if there is one. */
export function printNext(
  terminal: Terminal,
  { pagination }: { readonly pagination?: { readonly next_cursor?: string } },
): void {
  const next = pagination?.next_cursor;
  if (next !== undefined) terminal.warn(`More follow: --cursor ${next}`);
}

/** Commands that begin with a word, such as `tollgate limits`. */
export function group(name: string, summary: string, commands: readonly Command[]): Command {
  const made = new Command(name).description(summary);
  for (const one of commands) made.addCommand(one);
  return made;
}

/** A limit of one caller: `100/minute`, or `none`. @throws CommandFailure */
export function parseLimitText(text: string): { requests_per_unit: number; unit: string } | undefined {
  if (text === 'none') return undefined;
  const [, requests, unit] = /^(\d{1,10})\/([a-z]+)$/i.exec(text) ?? [];
  if (requests === undefined || unit === undefined)
    throw new CommandFailure(
      `not a limit: ${text}. Expected a number and a unit, such as 100/minute, or none`,
    );
  return { requests_per_unit: Number(requests), unit };
}

export function toSource({ env }: Environment, { context }: CommonOptions): Source {
  return { env, contextName: context };
}
