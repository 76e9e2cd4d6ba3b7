import { parseArgs } from 'node:util';
import { meantName } from '@tollgate/kit/spelling';
import type { userFilters } from '../admin/user-filters.ts';
import type { EnvironmentFiles } from './load-settings.ts';

/** A query parameter as a flag: `created_from` is `--created-from`. */
export type FlagNameOf<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}-${FlagNameOf<Tail>}`
  : S;

type FilterFlags = {
  readonly [K in keyof typeof userFilters as FlagNameOf<K>]?: string | undefined;
};

/** Flags of all commands. A command accepts those of its entry. */
export interface CommandFlags extends FilterFlags {
  readonly aud?: string | undefined;
  readonly role?: string | undefined;
  readonly confirm?: boolean | undefined;
  readonly file?: string | undefined;
  readonly 'env-file'?: string | undefined;
  readonly 'database-url'?: string | undefined;
  readonly json?: boolean | undefined;
  readonly asvs?: boolean | undefined;
  readonly 'dry-run'?: boolean | undefined;
  readonly errors?: string | undefined;
  readonly 'resume-from'?: string | undefined;
  readonly limit?: string | undefined;
  readonly cursor?: string | undefined;
  readonly for?: string | undefined;
  readonly remove?: boolean | undefined;
  readonly alg?: string | undefined;
  readonly force?: boolean | undefined;
  readonly owner?: string | undefined;
  readonly slug?: string | undefined;
  readonly 'without-owner'?: boolean | undefined;
  readonly events?: string | undefined;
  readonly grace?: string | undefined;
  readonly scopes?: string | undefined;
  readonly audiences?: string | undefined;
  readonly 'jwks-uri'?: string | undefined;
  readonly user?: string | undefined;
  readonly org?: string | undefined;
  readonly server?: string | undefined;
  readonly policy?: string | undefined;
  readonly as?: string | undefined;
  readonly credential?: boolean | undefined;
  readonly aal?: string | undefined;
  readonly address?: string | undefined;
  readonly headers?: string | undefined;
  readonly route?: string | undefined;
  readonly 'to-policy'?: boolean | undefined;
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly hosts?: string | undefined;
}

export interface CommandOptions {
  readonly environmentFiles: EnvironmentFiles;
  /** Positional arguments after the name of the command. */
  readonly args: readonly string[];
  readonly flags: CommandFlags;
}

export type Command = (options: CommandOptions) => Promise<void>;

export interface Flag {
  readonly doc: string;
  /** Placeholder of the value. Absent for a switch. */
  readonly value?: string;
}

export interface CommandEntry {
  readonly doc: string;
  readonly run: Command;
  /** Arguments in brackets are optional; with `…` the last may be repeated. */
  readonly args?: readonly string[];
  readonly flags?: Readonly<Partial<Record<keyof CommandFlags, Flag>>>;
  /** Paragraphs for `--help`. */
  readonly details?: string;
}

export type Commands = Readonly<Record<string, CommandEntry>>;

export type ParsedArguments =
  /** `command` is the name of a command or of a group, or empty. */
  | { readonly kind: 'help'; readonly command: string }
  | { readonly kind: 'invalid'; readonly command: string; readonly problem: string }
  | { readonly kind: 'run'; readonly run: Command; readonly options: CommandOptions };

/** Flags of every command. */
export const commonFlags: Readonly<Record<string, Flag & { readonly short: string }>> = {
  config: { short: 'c', value: 'file', doc: 'Read variables from this file instead of .env.' },
  'config-dir': {
    short: 'd',
    value: 'folder',
    doc: 'Also read variables from its *.env files, and watch them while serving.',
  },
  help: { short: 'h', doc: 'Print the help of the command.' },
};

/** A problem of the arguments. The message never has values: they may be secrets. */
class InvalidArguments extends Error {}

export function parseArguments(given: readonly string[], commands: Commands): ParsedArguments {
  let name = '';
  try {
    const { values, positionals } = tokenize(given, allFlags(commands));
    const groups = new Set(Object.keys(commands).flatMap((known) => known.split(' ').slice(0, -1)));
    const [first = 'serve', second] = positionals;
    const isGroup = groups.has(first);
    if (isGroup && second === undefined) return { kind: 'help', command: first };
    const words = isGroup ? 2 : Math.min(positionals.length, 1);
    name = isGroup ? `${first} ${second}` : first;
    const { config: file, 'config-dir': folder, help, ...flags } = values;
    if (help === true && positionals.length === 0) return { kind: 'help', command: '' };
    const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (entry === undefined) {
      const unknown = name;
      name = '';
      throw new InvalidArguments(`unknown command: ${unknown}${suggestion(unknown, Object.keys(commands))}`);
    }
    if (help === true) return { kind: 'help', command: name };
    const args = positionals.slice(words);
    checkArguments(entry, args);
    checkFlags(entry, Object.keys(flags));
    // Only strings and booleans by the flags of the entry, which were checked.
    const environmentFiles = { file, folder } as EnvironmentFiles;
    return { kind: 'run', run: entry.run, options: { environmentFiles, args, flags } };
  } catch (error) {
    if (!(error instanceof InvalidArguments)) throw error;
    return { kind: 'invalid', command: name, problem: [name, error.message].filter(Boolean).join(': ') };
  }
}

function allFlags(commands: Commands): Record<string, Flag & { readonly short?: string }> {
  return Object.assign({}, ...Object.values(commands).map(({ flags }) => flags), commonFlags);
}

function tokenize(
  given: readonly string[],
  known: Readonly<Record<string, Flag & { readonly short?: string }>>,
): { readonly values: Record<string, string | boolean>; readonly positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { value, short }]) => [
      name,
      { type: value === undefined ? 'boolean' : 'string', ...(short !== undefined && { short }) } as const,
    ]),
  );
  const { tokens } = parseArgs({ args: [...given], options, strict: false, tokens: true });
  const values: Record<string, string | boolean> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const flag = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (flag === undefined)
      throw new InvalidArguments(
        `unknown flag ${token.rawName}${suggestion(token.name, Object.keys(known))}`,
      );
    values[token.name] = readValue(token, flag);
  }
  return { values, positionals };
}

function readValue(
  token: {
    readonly rawName: string;
    readonly value?: string | undefined;
    readonly inlineValue?: boolean | undefined;
  },
  { value: placeholder }: Flag,
): string | boolean {
  if (placeholder === undefined) {
    if (token.value !== undefined) throw new InvalidArguments(`${token.rawName} does not accept a value`);
    return true;
  }
  const isFlag = token.inlineValue !== true && /^-./.test(token.value ?? '');
  if (token.value === undefined || isFlag)
    throw new InvalidArguments(`${token.rawName} requires a value: ${token.rawName} <${placeholder}>`);
  return token.value;
}

function suggestion(name: string, known: readonly string[]): string {
  const meant = meantName(name, known);
  if (meant === undefined) return '';
  return `, did you mean ${name.length > 1 && !known.some((one) => one.includes(' ')) ? '--' : ''}${meant}?`;
}

function checkArguments({ args: wanted = [] }: CommandEntry, args: readonly string[]): void {
  const needed = wanted.filter((arg) => arg.startsWith('<'));
  if (args.length < needed.length)
    throw new InvalidArguments(`requires ${needed.slice(args.length).join(' ')}`);
  const isBounded = wanted.at(-1)?.includes('…') !== true;
  if (isBounded && args.length > wanted.length)
    throw new InvalidArguments(
      wanted.length === 0 ? 'accepts no arguments' : `accepts ${wanted.join(' ')} only`,
    );
}

function checkFlags({ flags: known = {} }: CommandEntry, given: readonly string[]): void {
  const flag = given.find((name) => !Object.hasOwn(known, name));
  if (flag !== undefined) throw new InvalidArguments(`does not accept --${flag}`);
}
