import { parseArgs } from 'node:util';
import { getErrorMessage } from '@tollgate/kit/errors';
import { exitOnStopSignal } from '@tollgate/kit/stop-signals';
import packageJson from '../../package.json' with { type: 'json' };
import type { EnvironmentFiles } from './load-settings.ts';

interface CommandOptions {
  readonly environmentFiles: EnvironmentFiles;
  /** Positional arguments after the name of the command. */
  readonly args: readonly string[];
  readonly flags: CommandFlags;
}

/** A command accepts the flags of its entry. */
interface CommandFlags {
  readonly aud?: string | undefined;
  readonly role?: string | undefined;
  readonly confirm?: boolean | undefined;
  readonly file?: string | undefined;
  readonly 'env-file'?: string | undefined;
  readonly 'database-url'?: string | undefined;
  readonly json?: boolean | undefined;
  readonly 'dry-run'?: boolean | undefined;
  readonly errors?: string | undefined;
  readonly 'resume-from'?: string | undefined;
}

export type Command = (options: CommandOptions) => Promise<void>;

interface CommandEntry {
  readonly doc: string;
  readonly run: Command;
  /** Arguments in brackets are optional; with `…` the last may be repeated. */
  readonly args?: readonly string[];
  readonly flags?: readonly (keyof CommandFlags)[];
}

/** Loads the code of a command when it runs. */
function lazily(load: () => Promise<Command>): Command {
  return async (options) => (await load())(options);
}

async function serveCommand({ environmentFiles }: CommandOptions): Promise<void> {
  // Before the code of the server is loaded, which takes longest.
  const takeOver = exitOnStopSignal({ signals: process, exit: (code) => process.exit(code) });
  const { serve } = await import('./serve.ts');
  await serve(environmentFiles, takeOver);
}

const commands: Readonly<Record<string, CommandEntry>> = {
  serve: {
    doc: 'Migrate the schema and serve. The default command.',
    run: serveCommand,
  },
  migrate: {
    doc: 'Migrate the schema of the database.',
    run: lazily(async () => (await import('./migrate.ts')).migrateCommand),
  },
  check: {
    doc: 'Check the environment and database of a GoTrue deployment, without changes.',
    run: lazily(async () => (await import('./check.ts')).checkCommand),
    flags: ['env-file', 'database-url', 'json'],
  },
  'admin createuser': {
    doc: 'Create a user and print the id. The password is read from standard input if omitted.',
    run: lazily(async () => (await import('./admin.ts')).createUserCommand),
    args: ['<email>', '[password]'],
    flags: ['aud', 'role', 'confirm'],
  },
  'admin deleteuser': {
    doc: 'Delete a user.',
    run: lazily(async () => (await import('./admin.ts')).deleteUserCommand),
    args: ['<email or id>'],
    flags: ['aud'],
  },
  'admin reencrypt': {
    doc: 'Encrypt existing values with the current key.',
    run: lazily(async () => (await import('./admin.ts')).reencryptCommand),
  },
  'admin token': {
    doc: 'Print a token for the admin API. It does not expire: use it in servers only.',
    run: lazily(async () => (await import('./token.ts')).tokenCommand),
    flags: ['role'],
  },
  import: {
    doc: 'Import users from a file of JSON lines, or from standard input (-).',
    run: lazily(async () => (await import('./import.ts')).importCommand),
    args: ['<file>'],
    flags: ['dry-run', 'errors', 'resume-from'],
  },
  routes: {
    doc: 'Validate the route rules and print them, or the rules that match requests.',
    run: lazily(async () => (await import('./routes.ts')).routesCommand),
    args: ['[method path …]'],
    flags: ['file'],
  },
  version: { doc: 'Print the version.', run: printVersion },
};

const help = `tollgate-auth [command] [-c file] [-d folder]

The user authentication server. It is configured by environment variables (see docs/settings-auth.md), which
override those of the file .env. To try it: npm start -w services/auth

${Object.entries(commands)
  .map(([name, { doc, args = [] }]) => `  ${[name, ...args].join(' ').padEnd(37)} ${doc}`)
  .join('\n')}

  -c, --config <file>   Read variables from this file instead of .env.
  -d, --config-dir <folder>
                        Also read variables from its *.env files, and watch them while serving.
      --aud <audience>  Audience of the user. Default: that of the settings.
      --role <role>     Role of the user or token. Default: that of the settings.
      --confirm         Create the user with a confirmed email address.
      --file <file>     Route rules. Default: the file of the settings.
      --env-file <file> Variables to check, instead of the environment.
      --database-url <url>
                        Database to check, instead of that of the variables.
      --json            Print the report as JSON.
      --dry-run         Check the users of an import, and import none.
      --errors <file>   Write lines that cannot be imported, with the reason, as JSON lines.
      --resume-from <line>
                        Line to start an import with. Users that are present are skipped anyway.
  -h, --help            Print this help.

Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 lines that were not imported (see --errors).

Examples:
  tollgate-auth -c auth.env admin createuser ada@example.com --confirm
  tollgate-auth -c auth.env import users.ndjson --dry-run
  tollgate-auth -c auth.env import users.ndjson --errors=errors.ndjson
  jq -c '.users[]' export.json | tollgate-auth -c auth.env import -
`;

export type ParsedArguments =
  | { readonly kind: 'help' }
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'run'; readonly run: Command; readonly options: CommandOptions };

/** Runs a command. Sets the exit code 2 if the arguments are invalid. */
export async function runCommand(args: readonly string[]): Promise<void> {
  const parsed = parseArguments(args);
  if (parsed.kind === 'run') return parsed.run(parsed.options);
  if (parsed.kind === 'help') process.stdout.write(help);
  else {
    process.stderr.write(`${parsed.problem}\n\n${help}`);
    process.exitCode = 2;
  }
}

export function parseArguments(given: readonly string[]): ParsedArguments {
  try {
    const { values, positionals } = parseArgs({
      args: [...given],
      options: {
        config: { type: 'string', short: 'c' },
        'config-dir': { type: 'string', short: 'd' },
        help: { type: 'boolean', short: 'h' },
        aud: { type: 'string' },
        role: { type: 'string' },
        confirm: { type: 'boolean' },
        file: { type: 'string' },
        'env-file': { type: 'string' },
        'database-url': { type: 'string' },
        json: { type: 'boolean' },
        'dry-run': { type: 'boolean' },
        errors: { type: 'string' },
        'resume-from': { type: 'string' },
      },
      allowPositionals: true,
    });
    const { config: file, 'config-dir': folder, help: wantsHelp = false, ...flags } = values;
    const isGroupAlone = positionals.length === 1 && positionals[0] === 'admin';
    if (wantsHelp || isGroupAlone) return { kind: 'help' };
    const words = positionals[0] === 'admin' ? 2 : 1;
    const name = positionals.slice(0, words).join(' ') || 'serve';
    const args = positionals.slice(words);
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command === undefined) return { kind: 'invalid', problem: `unknown command: ${name}` };
    const problem = findArgumentProblem(command, args) ?? findFlagProblem(command, flags);
    if (problem !== undefined) return { kind: 'invalid', problem: `${name} ${problem}` };
    return { kind: 'run', run: command.run, options: { environmentFiles: { file, folder }, args, flags } };
  } catch (error) {
    return { kind: 'invalid', problem: getErrorMessage(error) };
  }
}

function findArgumentProblem(
  { args: wanted = [] }: CommandEntry,
  args: readonly string[],
): string | undefined {
  const needed = wanted.filter((arg) => arg.startsWith('<'));
  if (args.length < needed.length) return `requires ${needed.slice(args.length).join(' ')}`;
  const isBounded = wanted.at(-1)?.includes('…') !== true;
  return isBounded && args.length > wanted.length
    ? `does not accept ${args.slice(wanted.length).join(' ')}`
    : undefined;
}

function findFlagProblem({ flags: taken = [] }: CommandEntry, flags: CommandFlags): string | undefined {
  const flag = Object.keys(flags).find((name) => !taken.some((known) => known === name));
  return flag === undefined ? undefined : `does not accept --${flag}`;
}

async function printVersion(): Promise<void> {
  await new Promise((resolve) => process.stdout.write(`tollgate-auth ${packageJson.version}\n`, resolve));
}
