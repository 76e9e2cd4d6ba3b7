import { unwrap } from '@tollgate/admin-clients/clients';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
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
import { userChangeCommands } from './user-changes.ts';
import { findUser, printUsers, whichUser } from './user-lookup.ts';

/** `tollgate users`: users of the auth server, and their sessions. */
export function userCommands(environment: Environment): Command {
  return group('users', 'Users of the auth server, and their sessions.', [
    listCommand(environment),
    getCommand(environment),
    sessionsCommand(environment),
    factorsCommand(environment),
    ...userChangeCommands(environment),
  ]);
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

function factorsCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('factors', 'List the second factors of a user.', ['tollgate users factors ann@example.com'])
    .argument('<user>', whichUser)
    .action(async (which: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const path = { user_id: (await findUser(client, which)).id };
      const factors = await unwrap(client.GET('/admin/users/{user_id}/factors', { params: { path } }));
      if (options.json) return printJson(terminal, factors);
      printTable(terminal, factors, {
        columns: {
          ID: ({ id }) => id,
          TYPE: ({ factor_type: type }) => type,
          NAME: ({ friendly_name: name }) => name,
          STATUS: ({ status }) => status,
          CREATED: ({ created_at: created }) => created,
        },
        empty: 'The user has no second factor.',
      });
    });
}
