import { type AuthClient, unwrap } from '@tollgate/admin-clients/clients';
import { isUuid } from '@tollgate/kit/text';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import {
  type CommonOptions,
  command,
  type Environment,
  group,
  type ListOptions,
  pagedCommand,
  printNext,
  toPageQuery,
  toSource,
} from './command.ts';

export const whichUser = 'Email address, phone number or id of the user.';

/** `tollgate users`: users of the auth server, and their sessions. */
export function userCommands(environment: Environment): Command {
  return group('users', 'Users of the auth server, and their sessions.', [
    listCommand(environment),
    getCommand(environment),
    sessionsCommand(environment),
    banCommand(environment),
    unbanCommand(environment),
    signOutCommand(environment),
    planCommand(environment),
  ]);
}

type User = Awaited<ReturnType<typeof findUser>>;

/** Finds a user by its id, email address or phone number. @throws CommandFailure */
export async function findUser(client: AuthClient, which: string) {
  if (isUuid(which))
    return unwrap(client.GET('/admin/users/{user_id}', { params: { path: { user_id: which } } }));
  const query = which.includes('@') ? { email: which } : { phone: which.replace(/^\+/, '') };
  const { users } = await unwrap(client.GET('/admin/users', { params: { query: { ...query, limit: '2' } } }));
  const [user, another] = users;
  if (user === undefined) throw new CommandFailure(`there is no user ${which}`, exitCodes.failed);
  if (another !== undefined)
    throw new CommandFailure(`several users are ${which}: use the id of one of them`);
  return user;
}

function printUsers(terminal: Terminal, users: readonly User[]): void {
  printTable(terminal, users, {
    columns: {
      ID: ({ id }) => id,
      USER: ({ email, phone }) => email || phone,
      PLAN: ({ app_metadata: { plan } }) => (typeof plan === 'string' ? plan : undefined),
      CREATED: ({ created_at: created }) => created,
      'LAST SIGN-IN': ({ last_sign_in_at: last }) => last,
      STATE: ({ banned_until: until, confirmed_at: confirmed }) =>
        until !== undefined && Date.parse(until) > Date.now()
          ? `banned until ${until}`
          : confirmed === undefined
            ? 'not confirmed'
            : 'active',
    },
    empty: 'No user is like that. tollgate users list --help has all filters.',
  });
}

interface UserListOptions extends ListOptions {
  readonly search?: string;
  readonly plan?: string;
  readonly provider?: string;
  readonly banned?: true;
}

function listCommand(environment: Environment): Command {
  const { terminal } = environment;
  return pagedCommand('list', 'List users, newest first.', [
    'tollgate users list --search ann@',
    'tollgate users list --plan pro --banned --json',
  ])
    .option('--search <text>', 'Text in email address, phone number or name.')
    .option('--plan <plan>', 'The plan.')
    .option('--provider <name>', 'The identity provider, such as google or email.')
    .option('--banned', 'Only banned users.')
    .action(async (options: UserListOptions) => {
      const { search, plan, provider, banned } = options;
      const query = {
        ...toPageQuery(options),
        ...(search !== undefined && { filter: search }),
        ...(plan !== undefined && { plan }),
        ...(provider !== undefined && { provider }),
        ...(banned && { banned: 'true' }),
      };
      const client = await connectAuth(toSource(environment, options));
      const page = await unwrap(client.GET('/admin/users', { params: { query } }));
      if (options.json) return printJson(terminal, page);
      printUsers(terminal, page.users);
      printNext(terminal, page);
    });
}

function getCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('get', 'Show a user.', ['tollgate users get ann@example.com --json'])
    .argument('<user>', whichUser)
    .action(async (which: string, options: CommonOptions) => {
      const user = await findUser(await connectAuth(toSource(environment, options)), which);
      if (options.json) return printJson(terminal, user);
      printUsers(terminal, [user]);
    });
}

function sessionsCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('sessions', 'List the sessions of a user.', ['tollgate users sessions ann@example.com'])
    .argument('<user>', whichUser)
    .action(async (which: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const { id } = await findUser(client, which);
      const path = { user_id: id };
      const { sessions } = await unwrap(client.GET('/admin/users/{user_id}/sessions', { params: { path } }));
      if (options.json) return printJson(terminal, sessions);
      printTable(terminal, sessions, {
        columns: {
          ID: (session) => session.id,
          CREATED: (session) => session.created_at,
          REFRESHED: (session) => session.refreshed_at,
          AAL: ({ aal }) => aal,
          IP: ({ ip }) => ip,
          DEVICE: (session) => session.user_agent,
        },
        empty: 'The user is not signed in.',
      });
    });
}

/** A change of a user, and what it says afterwards. */
function changeCommand(
  environment: Environment,
  made: Command,
  {
    change,
    done,
  }: {
    readonly change: (client: AuthClient, user: User, argument: string | undefined) => Promise<unknown>;
    readonly done: (name: string, argument: string | undefined) => string;
  },
): Command {
  return made.action(async (which: string, ...rest: readonly unknown[]) => {
    const options = made.opts<CommonOptions & { readonly for?: string }>();
    const [second] = rest;
    const argument = typeof second === 'string' ? second : options.for;
    const client = await connectAuth(toSource(environment, options));
    const user = await findUser(client, which);
    const changed = await change(client, user, argument);
    if (options.json) printJson(environment.terminal, changed ?? {});
    else environment.terminal.warn(done(user.email || user.phone || user.id, argument));
  });
}

function update(
  client: AuthClient,
  { id }: User,
  body: { ban_duration?: string; app_metadata?: Record<string, unknown> },
) {
  return unwrap(client.PUT('/admin/users/{user_id}', { params: { path: { user_id: id } }, body }));
}

function banCommand(environment: Environment): Command {
  const made = command('ban', 'Ban a user: no sign-in and no new tokens, and none at the gateway.', [
    'tollgate users ban ann@example.com --for 24h',
  ])
    .argument('<user>', whichUser)
    .option('--for <duration>', 'Such as 30m or 24h. Default: 100 years.', '876000h');
  return changeCommand(environment, made, {
    change: (client, user, duration = '') => update(client, user, { ban_duration: duration }),
    done: (name) => `${name} is banned`,
  });
}

function unbanCommand(environment: Environment): Command {
  const made = command('unban', 'Lift the ban of a user.', ['tollgate users unban ann@example.com']).argument(
    '<user>',
    whichUser,
  );
  return changeCommand(environment, made, {
    change: (client, user) => update(client, user, { ban_duration: 'none' }),
    done: (name) => `${name} is not banned any more`,
  });
}

function signOutCommand(environment: Environment): Command {
  const made = command('sign-out', 'End all sessions of a user.', [
    'tollgate users sign-out ann@example.com',
  ]).argument('<user>', whichUser);
  return changeCommand(environment, made, {
    change: (client, { id }) =>
      unwrap(client.DELETE('/admin/users/{user_id}/sessions', { params: { path: { user_id: id } } })),
    done: (name) => `all sessions of ${name} have ended`,
  });
}

function planCommand(environment: Environment): Command {
  const made = command('plan', 'Set the plan of a user, which rate limits use.', [
    'tollgate users plan ann@example.com pro',
  ])
    .argument('<user>', whichUser)
    .argument('<plan>', 'Name of the plan.');
  return changeCommand(environment, made, {
    change: (client, user, plan) => update(client, user, { app_metadata: { plan } }),
    done: (name, plan) => `${name} has the plan ${plan}`,
  });
}
