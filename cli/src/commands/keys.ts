import { unwrap } from '@tollgate/admin-clients/clients';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
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

/** `tollgate keys`: API keys of users, organizations and machines. */
export function keyCommands(environment: Environment): Command {
  return group('keys', 'API keys of users, organizations and machines.', [
    listCommand(environment),
    createCommand(environment),
    rotateCommand(environment),
    stateCommand(environment, {
      ...{ name: 'disable', disabled: true },
      summary: 'Disable an API key. Requests with it are rejected until it is enabled again.',
    }),
    stateCommand(environment, {
      ...{ name: 'enable', disabled: false },
      summary: 'Enable an API key that is disabled.',
    }),
    revokeCommand(environment),
  ]);
}

interface KeyListOptions extends ListOptions {
  readonly user?: string;
  readonly org?: string;
  readonly plan?: string;
}

function listCommand(environment: Environment): Command {
  const { terminal } = environment;
  return pagedCommand('list', 'List API keys, newest first.', ['tollgate keys list --plan pro'])
    .option('--user <id>', 'Only those of a user.')
    .option('--org <id>', 'Only those of an organization.')
    .option('--plan <plan>', 'The plan.')
    .action(async (options: KeyListOptions) => {
      const { user, org, plan } = options;
      const query = {
        ...toPageQuery(options),
        ...(user !== undefined && { user_id: user }),
        ...(org !== undefined && { org_id: org }),
        ...(plan !== undefined && { plan }),
      };
      const client = await connectAuth(toSource(environment, options));
      const page = await unwrap(client.GET('/admin/api-keys', { params: { query } }));
      if (options.json) return printJson(terminal, page);
      printTable(terminal, page.api_keys, {
        columns: {
          ID: ({ id }) => id,
          NAME: ({ name }) => name,
          KEY: ({ prefix, last4 }) => `${prefix}…${last4}`,
          OWNER: ({ owner }) => owner?.org_id ?? owner?.user_id ?? 'machine',
          PLAN: (key) => key.plan,
          'ADMIN SCOPES': ({ admin_scopes: scopes }) => scopes.join(' '),
          'LAST USE': ({ last_used_at: last }) => last,
          EXPIRES: ({ expires_at: expires }) => expires,
          STATE: ({ disabled }) => (disabled ? 'disabled' : 'active'),
        },
        empty: 'There is no API key like that. tollgate keys create --help says how to make one.',
      });
      printNext(terminal, page);
    });
}

interface CreateOptions extends CommonOptions {
  readonly user?: string;
  readonly org?: string;
  readonly plan?: string;
  readonly scopes?: readonly string[];
  readonly adminScopes?: readonly string[];
  readonly allowedNetworks?: readonly string[];
  readonly expiresAt?: string;
}

function createCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('create', 'Create an API key. It is shown once.', [
    'tollgate keys create reporting --admin-scopes users:read --allowed-networks 10.0.0.0/8',
    'tollgate keys create billing --plan pro > key',
  ])
    .argument('<name>', 'Name of the key.')
    .option('--user <id>', 'Owner: a user.')
    .option('--org <id>', 'Owner: an organization. Default: none, a machine.')
    .option('--plan <plan>', 'The plan.')
    .option('--scopes <names...>', 'Scopes, which access policies can require.')
    .option('--admin-scopes <names...>', 'Scopes of the admin API.')
    .option('--allowed-networks <cidrs...>', 'Networks of its callers. Default: all.')
    .option('--expires-at <time>', 'When it expires, such as 2027-01-01T00:00:00Z.')
    .action(async (name: string, options: CreateOptions) => {
      const { user, org, plan, scopes, adminScopes, allowedNetworks, expiresAt } = options;
      const owner = {
        ...(user !== undefined && { user_id: user }),
        ...(org !== undefined && { org_id: org }),
      };
      const body = {
        name,
        ...(Object.keys(owner).length > 0 && { owner }),
        ...(plan !== undefined && { plan }),
        ...(scopes !== undefined && { scopes: [...scopes] }),
        ...(adminScopes !== undefined && { admin_scopes: [...adminScopes] }),
        ...(allowedNetworks !== undefined && { allowed_networks: [...allowedNetworks] }),
        ...(expiresAt !== undefined && { expires_at: expiresAt }),
      };
      const client = await connectAuth(toSource(environment, options));
      printSecret(terminal, await unwrap(client.POST('/admin/api-keys', { body })), options);
    });
}

function rotateCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('rotate', 'Replace an API key. The new one is shown once.', [
    'tollgate keys rotate 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10 --grace 24h',
  ])
    .argument('<id>', 'Id of the key.')
    .option('--grace <duration>', 'How long the old one is still valid. Default: that of the settings.')
    .action(async (id: string, options: CommonOptions & { readonly grace?: string }) => {
      const { grace } = options;
      const client = await connectAuth(toSource(environment, options));
      const body = grace === undefined ? {} : { grace };
      const path = { key_id: id };
      const created = await unwrap(
        client.POST('/admin/api-keys/{key_id}/rotate', { params: { path }, body }),
      );
      printSecret(terminal, created, options);
    });
}

interface KeyState {
  readonly name: 'disable' | 'enable';
  readonly summary: string;
  readonly disabled: boolean;
}

/** Changes nothing else of the key. */
function stateCommand(environment: Environment, { name, summary, disabled }: KeyState): Command {
  const { terminal } = environment;
  return command(name, summary, [`tollgate keys ${name} 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10`])
    .argument('<id>', 'Id of the key.')
    .action(async (id: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const params = { path: { key_id: id } };
      const changed = await unwrap(client.PUT('/admin/api-keys/{key_id}', { params, body: { disabled } }));
      if (options.json) printJson(terminal, changed);
      else terminal.warn(`the key ${id} is ${name}d`);
    });
}

function revokeCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('revoke', 'Revoke an API key. It ends at once, also at the gateway.', [
    'tollgate keys revoke 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10',
  ])
    .argument('<id>', 'Id of the key.')
    .action(async (id: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      await unwrap(client.DELETE('/admin/api-keys/{key_id}', { params: { path: { key_id: id } } }));
      if (options.json) printJson(terminal, {});
      else terminal.warn(`the key ${id} is revoked`);
    });
}

/** The key alone on standard output, so that it can be written to a file. */
function printSecret(
  terminal: Terminal,
  created: { readonly id: string; readonly key: string },
  { json }: CommonOptions,
): void {
  if (json) printJson(terminal, created);
  else {
    terminal.warn(`The key ${created.id}, which is not shown again:`);
    terminal.print(`${created.key}\n`);
  }
}
