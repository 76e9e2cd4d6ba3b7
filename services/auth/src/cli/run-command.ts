import { parseArgs } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };
import { migrate } from '../db/migrate.ts';
import { withDefaultsOfMode } from '../dev/environment.ts';
import { signJwt } from '../keys/jwt.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import { createUserCommand, deleteUserCommand, reencryptCommand } from './admin.ts';
import { checkCommand } from './check.ts';
import { createCommandLogger, type EnvironmentFiles, loadSettings } from './load-settings.ts';
import { routesCommand } from './routes.ts';
import { serveCommand } from './serve.ts';

/** `migrate` */
const migrateCommand: Command = async ({ environmentFiles }) => {
  const { settings } = await loadSettings(environmentFiles);
  const logger = createCommandLogger(settings);
  try {
    await migrate(settings, { logger });
  } catch (error) {
    logger.fatal({ err: error }, 'schema not brought up to date');
    process.exitCode = 1;
  }
};

/** `admin token`: prints an access token that `/admin` takes, for ever and of nobody in particular. */
const tokenCommand: Command = async ({ environmentFiles, flags }) => {
  const { settings } = await loadSettings(environmentFiles, withDefaultsOfMode);
  const { jwtAdminRoles } = settings;
  const role = flags.role ?? jwtAdminRoles[0];
  if (role === undefined || !jwtAdminRoles.includes(role)) {
    // The server refuses tokens of others that do not expire.
    const roles = jwtAdminRoles.join(', ') || 'none';
    process.stderr.write(`${role ?? 'nobody'} may not call /admin: SVC_JWT_ADMIN_ROLES names ${roles}\n`);
    process.exitCode = 1;
    return;
  }
  const { keys } = await SigningKeySource.open(settings, { logger: createCommandLogger(settings) });
  process.stdout.write(`${signJwt({ role, iat: Math.floor(Date.now() / 1000) }, keys)}\n`);
};

/** What a command is given. */
interface CommandOptions {
  readonly environmentFiles: EnvironmentFiles;
  /** What stands after the name of the command. */
  readonly args: readonly string[];
  readonly flags: CommandFlags;
}

/** Flags of which a command takes those that its entry names. */
interface CommandFlags {
  readonly aud?: string | undefined;
  readonly role?: string | undefined;
  readonly confirm?: boolean | undefined;
  readonly file?: string | undefined;
  readonly 'env-file'?: string | undefined;
  readonly 'database-url'?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Runs a command. */
export type Command = (options: CommandOptions) => Promise<void>;

interface CommandEntry {
  readonly doc: string;
  readonly run: Command;
  /** What it takes after its name; those in brackets may be left out, and the last comes any number of times with `…`. */
  readonly args?: readonly string[];
  readonly flags?: readonly (keyof CommandFlags)[];
}

const commands: Readonly<Record<string, CommandEntry>> = {
  serve: { doc: 'Bring the schema up to date and serve; also without a command.', run: serveCommand },
  migrate: { doc: 'Bring the schema of the database up to date.', run: migrateCommand },
  check: {
    doc: 'Tell what an environment and a database of GoTrue come to; changes nothing.',
    run: checkCommand,
    flags: ['env-file', 'database-url', 'json'],
  },
  'admin createuser': {
    doc: 'Create a user, and print the id; the password comes from standard input when it is left out.',
    run: createUserCommand,
    args: ['<email>', '[password]'],
    flags: ['aud', 'role', 'confirm'],
  },
  'admin deleteuser': {
    doc: 'Delete a user.',
    run: deleteUserCommand,
    args: ['<email or id>'],
    flags: ['aud'],
  },
  'admin reencrypt': {
    doc: 'Encrypt what the database keeps as the settings say now.',
    run: reencryptCommand,
  },
  'admin token': {
    doc: 'Print a token for the admin API. It never expires: it belongs into servers only.',
    run: tokenCommand,
    flags: ['role'],
  },
  routes: {
    doc: 'Check the rules of routes and print them, or which of them decides on requests.',
    run: routesCommand,
    args: ['[method path …]'],
    flags: ['file'],
  },
  version: { doc: 'Print the version.', run: printVersion },
};

const help = `tollgate-auth [command] [-c file] [-d folder]

The user authentication server. It is configured by environment variables (docs/settings-auth.md has the table), which take
precedence over a file .env. To try it here: npm start -w services/auth

${Object.entries(commands)
  .map(([name, { doc, args = [] }]) => `  ${[name, ...args].join(' ').padEnd(37)} ${doc}`)
  .join('\n')}

  -c, --config <file>   Read variables from this file instead of .env.
  -d, --config-dir <folder>
                        Read variables from its *.env, too; while serving, follow their changes.
      --aud <audience>  Audience of the user; that of the settings when left out.
      --role <role>     Role of the user who is created, or of the token; that of the settings when left out.
      --confirm         The email of the user who is created needs no confirmation.
      --file <file>     Rules of routes; the file of the settings when left out.
      --env-file <file> Variables to check, in place of the environment and its files.
      --database-url <url>
                        Database to check, in place of that of the variables.
      --json            Print the result of the check as JSON.
  -h, --help            Print this.
`;

/** What the arguments ask for. */
export type Asked =
  | { readonly kind: 'help' }
  | { readonly kind: 'nonsense'; readonly problem: string }
  | { readonly kind: 'run'; readonly run: Command; readonly options: CommandOptions };

/** Runs what the arguments ask for; sets the exit code 2 when they ask for nothing that there is. */
export async function runCommand(args: readonly string[]): Promise<void> {
  const asked = readArguments(args);
  if (asked.kind === 'run') return asked.run(asked.options);
  if (asked.kind === 'help') process.stdout.write(help);
  else {
    process.stderr.write(`${asked.problem}\n\n${help}`);
    process.exitCode = 2;
  }
}

/** Reads the arguments of the program. */
export function readArguments(given: readonly string[]): Asked {
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
    if (command === undefined) return { kind: 'nonsense', problem: `unknown command: ${name}` };
    const problem = argumentProblem(command, args) ?? flagProblem(command, flags);
    if (problem !== undefined) return { kind: 'nonsense', problem: `${name} ${problem}` };
    return { kind: 'run', run: command.run, options: { environmentFiles: { file, folder }, args, flags } };
  } catch (error) {
    return { kind: 'nonsense', problem: error instanceof Error ? error.message : String(error) };
  }
}

function argumentProblem({ args: wanted = [] }: CommandEntry, args: readonly string[]): string | undefined {
  const needed = wanted.filter((arg) => arg.startsWith('<'));
  if (args.length < needed.length) return `needs ${needed.slice(args.length).join(' ')}`;
  const isBounded = wanted.at(-1)?.includes('…') !== true;
  return isBounded && args.length > wanted.length
    ? `does not take ${args.slice(wanted.length).join(' ')}`
    : undefined;
}

function flagProblem({ flags: taken = [] }: CommandEntry, flags: CommandFlags): string | undefined {
  const flag = Object.keys(flags).find((name) => !taken.some((known) => known === name));
  return flag === undefined ? undefined : `does not take --${flag}`;
}

async function printVersion(): Promise<void> {
  await new Promise((resolve) => process.stdout.write(`tollgate-auth ${packageJson.version}\n`, resolve));
}
