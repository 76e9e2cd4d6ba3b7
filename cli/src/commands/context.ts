import type { Command } from 'commander';
import {
  type Context,
  contextFilePath,
  findContext,
  forAuthServer,
  hasOtherAuthServer,
  readContexts,
  updateContexts,
} from '../connection/contexts.ts';
import { requireSecret, requireUrl } from '../connection/inputs.ts';
import { CommandFailure } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, group } from './command.ts';

interface SetOptions {
  readonly authUrl?: string;
  readonly limiterUrl?: readonly string[];
  readonly keyStdin?: true;
  readonly limiterTokenStdin?: true;
  readonly xdsUrl?: string;
  readonly consoleUrl?: string;
}

/** `tollgate context`: the installations that commands can reach. */
export function contextCommands(environment: Environment): Command {
  return group('context', 'Installations that commands can reach.', [
    setCommand(environment),
    listCommand(environment),
    useCommand(environment),
    removeCommand(environment),
  ]);
}

function setCommand({ env, terminal, readInput }: Environment): Command {
  return command('set', 'Add or change a context, and use it.', [
    'tollgate context set shop --auth-url https://auth.example.com --key-stdin < key',
    'tollgate context set shop --limiter-url http://127.0.0.1:6071 --limiter-token-stdin < token',
  ])
    .argument('<name>', 'Name of the context.')
    .option('--auth-url <url>', 'Base URL of the user authentication server.')
    .option('--key-stdin', 'Read an API key with admin scopes from standard input.')
    .option('--limiter-url <url...>', 'Base URLs of the counter API, one for each replica.')
    .option(
      '--limiter-token-stdin',
      'Read a token of the counter API from standard input. Default: the API key.',
    )
    .option('--xds-url <url>', 'Base URL of the admin API of the xDS server.')
    .option('--console-url <url>', 'Base URL of the admin port of the console, for doctor.')
    .action(async (name: string, options: SetOptions) => {
      const { authUrl, limiterUrl = [], keyStdin, limiterTokenStdin, xdsUrl, consoleUrl } = options;
      if (keyStdin === true && limiterTokenStdin === true)
        throw new CommandFailure(
          'standard input has one secret: use --key-stdin and --limiter-token-stdin one after the other',
        );
      for (const url of [authUrl, xdsUrl, consoleUrl, ...limiterUrl]) if (url !== undefined) requireUrl(url);
      const isSecretGiven = keyStdin === true || limiterTokenStdin === true;
      const secret = isSecretGiven ? requireSecret(await readInput(), 'standard input') : '';
      const path = contextFilePath(env);
      const change = (before: Context | undefined): Context => ({
        ...(authUrl === undefined ? before : forAuthServer(before, authUrl)),
        ...(limiterUrl.length > 0 && { limiterUrls: limiterUrl }),
        ...(xdsUrl !== undefined && { xdsUrl }),
        ...(consoleUrl !== undefined && { consoleUrl }),
        ...(keyStdin === true && { key: secret }),
        ...(limiterTokenStdin === true && { limiterToken: secret }),
      });
      let isOther = false;
      await updateContexts(path, (file) => {
        const before = findContext(file, name);
        isOther = before !== undefined && authUrl !== undefined && hasOtherAuthServer(before, authUrl);
        return { current: name, contexts: { ...file.contexts, [name]: change(before) } };
      });
      if (isOther)
        terminal.warn(
          `context ${name} had another auth server: its sign-in, key, other tokens and URLs are removed`,
        );
      terminal.warn(`context ${name} is stored in ${path}, and is the current one`);
    });
}

function listCommand({ env, terminal }: Environment): Command {
  return command('list', 'List contexts, without their secrets.', ['tollgate context list']).action(
    async ({ json }: CommonOptions) => {
      const { current, contexts } = await readContexts(contextFilePath(env));
      const items = Object.entries(contexts).map(
        ([name, { authUrl, limiterUrls = [], login, key, limiterToken }]) => ({
          name,
          current: name === current,
          authUrl,
          limiterUrls,
          isSignedIn: login !== undefined,
          hasKey: key !== undefined,
          hasLimiterToken: limiterToken !== undefined,
        }),
      );
      if (json) return printJson(terminal, items);
      printTable(terminal, items, {
        columns: {
          CURRENT: (item) => (item.current ? '*' : ' '),
          NAME: (item) => item.name,
          'AUTH SERVER': (item) => item.authUrl,
          CREDENTIAL: (item) => (item.isSignedIn ? 'login' : item.hasKey ? 'key' : undefined),
          'COUNTER API': (item) => item.limiterUrls.join(' '),
        },
        empty: 'There is no context yet. Add one: tollgate login --auth-url <url>',
      });
    },
  );
}

function useCommand({ env, terminal }: Environment): Command {
  return command('use', 'Make a context the current one.', ['tollgate context use shop'])
    .argument('<context>', 'Name of the context.')
    .action(async (name: string) => {
      const path = contextFilePath(env);
      await updateContexts(path, ({ contexts }) => {
        requireContext(contexts, name);
        return { current: name, contexts };
      });
      terminal.warn(`context ${name} is the current one`);
    });
}

function removeCommand({ env, terminal }: Environment): Command {
  return command('remove', 'Remove a context with its secrets.', ['tollgate context remove shop'])
    .argument('<context>', 'Name of the context.')
    .action(async (name: string) => {
      const path = contextFilePath(env);
      await updateContexts(path, ({ current, contexts }) => {
        requireContext(contexts, name);
        const { [name]: _removed, ...others } = contexts;
        const next = current === name ? undefined : current;
        return { ...(next !== undefined && { current: next }), contexts: others };
      });
      terminal.warn(`context ${name} is removed`);
    });
}

function requireContext(contexts: Readonly<Record<string, Context>>, name: string): void {
  if (!Object.hasOwn(contexts, name))
    throw new CommandFailure(`there is no context ${name}: tollgate context list has all contexts`);
}
