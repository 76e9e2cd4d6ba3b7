import { RequestError } from '@tollgate/admin-clients/clients';
import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { auditCommands } from './commands/audit.ts';
import { benchCommands } from './commands/bench.ts';
import { clientCommands } from './commands/clients.ts';
import type { Environment } from './commands/command.ts';
import { completeCommand, printCandidates } from './commands/complete.ts';
import { contextCommands } from './commands/context.ts';
import { doctorCommand } from './commands/doctor.ts';
import { explainCommand } from './commands/explain.ts';
import { keyCommands } from './commands/keys.ts';
import { limitCommands } from './commands/limits.ts';
import { orgCommands } from './commands/orgs.ts';
import { policyCommands } from './commands/policy.ts';
import { loginCommand, logoutCommand } from './commands/sign-in.ts';
import { signingKeyCommands } from './commands/signing-keys.ts';
import { statusCommand } from './commands/status.ts';
import { tokenCommands } from './commands/tokens.ts';
import { topCommand } from './commands/top.ts';
import { upCommand } from './commands/up.ts';
import { userCommands } from './commands/users.ts';
import { CommandFailure, describeRequestError, exitCodes } from './failure.ts';

const help = `
Exit codes: 0 done; 1 the service refused the request or cannot be reached; 2 wrong arguments or
configuration; 3 a check found a problem.

Environment: TOLLGATE_CONTEXT, TOLLGATE_AUTH_URL, TOLLGATE_KEY, TOLLGATE_LIMITER_URLS (separated by
commas), TOLLGATE_LIMITER_TOKEN, TOLLGATE_XDS_URL, TOLLGATE_XDS_TOKEN and TOLLGATE_CONSOLE_URL
replace what the context has; TOLLGATE_CONFIG is its file.

Completion: tollgate complete --help.
`;

/** All commands. */
export function createProgram(environment: Environment): Command {
  const { terminal } = environment;
  const program = new Command('tollgate')
    .description('Policies, limits, users and keys of Tollgate, and the state of its services.')
    .version(packageJson.version)
    .addHelpText('after', help);
  for (const one of [
    upCommand(environment),
    loginCommand(environment),
    logoutCommand(environment),
    statusCommand(environment),
    topCommand(environment),
    doctorCommand(environment),
    benchCommands(environment),
    explainCommand(environment),
    policyCommands(environment),
    limitCommands(environment),
    userCommands(environment),
    orgCommands(environment),
    keyCommands(environment),
    clientCommands(environment),
    tokenCommands(environment),
    signingKeyCommands(environment),
    auditCommands(environment),
    contextCommands(environment),
    completeCommand(environment),
  ])
    program.addCommand(one);
  configure(program, terminal);
  return program;
}

/** The words that name a command. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Settings are not inherited by commands that are added. */
function configure(command: Command, terminal: Environment['terminal']): void {
  command
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError(`(${pathOf(command)} --help has all commands, options and examples)`)
    .configureOutput({ writeOut: terminal.print, writeErr: (text) => terminal.warn(text.trimEnd()) });
  for (const one of command.commands) configure(one, terminal);
}

/** Says what to do about an error, where the service cannot know. */
function findHint({ code, status }: RequestError): string | undefined {
  if (code === 'unreachable' || code === 'unexpected_response')
    return 'tollgate doctor checks the services of the context, and says what to do';
  return status === 401 || code === 'bad_jwt'
    ? 'sign in with tollgate login, or set an API key: tollgate context set --help'
    : undefined;
}

/** Runs a command. Returns its exit code. */
export async function run(args: readonly string[], environment: Environment): Promise<number> {
  try {
    const program = createProgram(environment);
    const [first, second, ...words] = args;
    // These words are of an unfinished line, and no arguments.
    if (first === 'complete' && second === '--') await printCandidates(environment, program, words);
    else await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (error instanceof RequestError) {
      environment.terminal.warn(describeRequestError(error));
      const hint = findHint(error);
      if (hint !== undefined) environment.terminal.warn(hint);
      return exitCodes.failed;
    }
    if (!(error instanceof CommandFailure)) throw error;
    // Without a message, the output says it already.
    if (error.message !== '') environment.terminal.warn(error.message);
    return error.exitCode;
  }
}
