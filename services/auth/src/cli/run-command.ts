import { parseArgs } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };
import { migrateCommand } from './migrate-command.ts';
import { serveCommand } from './serve-command.ts';

/** Runs a command with the variables of this file besides the environment; a missing one is an error when it was named. */
export type Command = (options: { readonly environmentFile: string | undefined }) => Promise<void>;

const commands: Readonly<Record<string, { readonly doc: string; readonly run: Command }>> = {
  serve: { doc: 'Bring the schema up to date and serve; also without a command.', run: serveCommand },
  migrate: { doc: 'Bring the schema of the database up to date.', run: migrateCommand },
  version: { doc: 'Print the version.', run: printVersion },
};

const help = `tollgate-auth [command] [-c file]

The user authentication server. It is configured by environment variables (docs/settings-auth.md has the table), which take
precedence over a file .env. To try it here: npm start -w services/auth

${Object.entries(commands)
  .map(([name, { doc }]) => `  ${name.padEnd(10)} ${doc}`)
  .join('\n')}

  -c, --config <file>   Read variables from this file instead of .env.
  -h, --help            Print this.
`;

/** Runs what the arguments ask for; sets the exit code 2 when they ask for nothing that there is. */
export async function runCommand(args: readonly string[]): Promise<void> {
  const parsed = readArguments(args);
  if ('problem' in parsed) {
    process.stderr.write(`${parsed.problem}\n\n${help}`);
    process.exitCode = 2;
    return;
  }
  if (parsed.help) process.stdout.write(help);
  else await parsed.run({ environmentFile: parsed.environmentFile });
}

function readArguments(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { config: { type: 'string', short: 'c' }, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    const [name = 'serve', ...rest] = positionals;
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command === undefined || rest.length > 0)
      return { problem: `unknown command: ${positionals.join(' ')}` };
    return { help: values.help === true, run: command.run, environmentFile: values.config };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

async function printVersion(): Promise<void> {
  await new Promise((resolve) => process.stdout.write(`tollgate-auth ${packageJson.version}\n`, resolve));
}
