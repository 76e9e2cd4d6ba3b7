import { unwrap } from '@tollgate/admin-clients/clients';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { CommandFailure } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, group, toSource } from './command.ts';

const whichClient = 'Id of the client.';
/** The auth server lists no more at once. */
const maxClients = '1000';

/** `tollgate clients`: OAuth clients. */
export function clientCommands(environment: Environment): Command {
  return group('clients', 'OAuth clients: applications of others, services and programs.', [
    listCommand(environment),
    getCommand(environment),
    createCommand(environment),
    setCommand(environment),
    rotateSecretCommand(environment),
    deleteCommand(environment),
  ]);
}

interface OAuthClient {
  readonly client_id: string;
  readonly client_name?: string;
  readonly grant_types: readonly string[];
  readonly scopes?: readonly string[];
  readonly plan?: string;
  readonly disabled?: boolean;
  readonly built_in?: boolean;
  readonly client_secret?: string;
}

function printClients(terminal: Terminal, clients: readonly OAuthClient[]): void {
  printTable(terminal, clients, {
    columns: {
      ID: ({ client_id: id }) => id,
      NAME: ({ client_name: name }) => name,
      GRANTS: ({ grant_types: grants }) => grants.map((grant) => grant.split(':').at(-1)).join(' '),
      SCOPES: ({ scopes = [] }) => scopes.join(' '),
      PLAN: ({ plan }) => plan,
      STATE: ({ disabled, built_in: isBuiltIn }) =>
        disabled ? 'disabled' : isBuiltIn ? 'active, built in' : 'active',
    },
    empty: 'There is no client. tollgate clients create --help says how to make one.',
  });
}

/** Writes the secret alone to standard output, so that it can be redirected to a file. */
function printCreated(terminal: Terminal, client: OAuthClient, { json }: CommonOptions): void {
  const { client_id: id, client_secret: secret } = client;
  if (json) printJson(terminal, client);
  else if (secret === undefined) printClients(terminal, [client]);
  else {
    terminal.warn(`The secret of the client ${id}, which is not shown again:`);
    terminal.print(`${secret}\n`);
  }
}

function listCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('list', 'List OAuth clients, newest first.', ['tollgate clients list --json']).action(
    async (options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const query = { per_page: maxClients };
      const { clients } = await unwrap(client.GET('/admin/oauth/clients', { params: { query } }));
      if (options.json) return printJson(terminal, clients);
      printClients(terminal, clients);
      if (clients.length === Number(maxClients))
        terminal.warn(`These are the newest ${maxClients}. Others may follow.`);
    },
  );
}

function getCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('get', 'Show an OAuth client, as JSON with all its members.', [
    'tollgate clients get 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10',
  ])
    .argument('<id>', whichClient)
    .action(async (id: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const path = { client_id: id };
      printJson(terminal, await unwrap(client.GET('/admin/oauth/clients/{client_id}', { params: { path } })));
    });
}

/** Members that `create` and `set` have. */
interface MemberOptions extends CommonOptions {
  readonly redirectUri?: readonly string[];
  readonly scopes?: readonly string[];
  readonly audiences?: readonly string[];
  readonly plan?: string;
}

function withMembers(made: Command): Command {
  return made
    .option('--redirect-uri <uris...>', 'Where users return to after a sign-in.')
    .option('--scopes <names...>', 'Scopes of your API, and admin scopes such as tollgate:users:read.')
    .option('--audiences <uris...>', 'Resources that its tokens may be for.')
    .option('--plan <plan>', 'The plan, which rate limits use.');
}

function toMembers({ redirectUri, scopes, audiences, plan }: MemberOptions) {
  return {
    ...(redirectUri !== undefined && { redirect_uris: [...redirectUri] }),
    ...(scopes !== undefined && { scopes: [...scopes] }),
    ...(audiences !== undefined && { audiences: [...audiences] }),
    ...(plan !== undefined && { plan }),
  };
}

interface CreateOptions extends MemberOptions {
  readonly public?: true;
  readonly device?: true;
  readonly jwksUri?: string;
}

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';

/** Users sign in with a redirect URI or on a device. A client without both is a service. */
function grantsOf({ redirectUri = [], device }: CreateOptions): string[] {
  const userGrants = [
    ...(redirectUri.length > 0 ? ['authorization_code'] : []),
    ...(device ? [deviceGrant] : []),
  ];
  return userGrants.length > 0 ? [...userGrants, 'refresh_token'] : ['client_credentials'];
}

function createCommand(environment: Environment): Command {
  const { terminal } = environment;
  return withMembers(
    command('create', 'Create an OAuth client. Its secret is shown once.', [
      'tollgate clients create reports --scopes orders:read > secret',
      'tollgate clients create Planner --redirect-uri https://planner.example/callback',
      'tollgate clients create television --device --public',
    ]),
  )
    .argument('<name>', 'Name, which users see. Without --redirect-uri and --device it is a service.')
    .option('--public', 'A program of users, which cannot keep a secret.')
    .option('--device', 'Users sign in with a code on another device.')
    .option('--jwks-uri <url>', 'URL of its keys: it signs assertions and has no secret.')
    .action(async (name: string, options: CreateOptions) => {
      const { public: isPublic, jwksUri } = options;
      if (isPublic && jwksUri !== undefined)
        throw new CommandFailure('a public client has no keys: use either --public or --jwks-uri');
      const client = await connectAuth(toSource(environment, options));
      const body = {
        client_name: name,
        grant_types: grantsOf(options),
        ...(isPublic && { token_endpoint_auth_method: 'none' }),
        ...(jwksUri !== undefined && {
          token_endpoint_auth_method: 'private_key_jwt',
          jwks_uri: jwksUri,
        }),
        ...toMembers(options),
      };
      printCreated(terminal, await unwrap(client.POST('/admin/oauth/clients', { body })), options);
    });
}

interface SetOptions extends MemberOptions {
  readonly name?: string;
  readonly disable?: true;
  readonly enable?: true;
}

function setCommand(environment: Environment): Command {
  const { terminal } = environment;
  return withMembers(
    command('set', 'Change an OAuth client. Lists are replaced.', [
      'tollgate clients set 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10 --plan pro',
      'tollgate clients set 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10 --disable',
    ]),
  )
    .argument('<id>', whichClient)
    .option('--name <name>', 'Name, which users see.')
    .option('--disable', 'It gets no tokens any more, and its sessions end.')
    .option('--enable', 'It gets tokens again.')
    .action(async (id: string, options: SetOptions) => {
      const { name, disable, enable } = options;
      if (disable && enable) throw new CommandFailure('use either --disable or --enable');
      const body = {
        ...(name !== undefined && { client_name: name }),
        ...((disable || enable) && { disabled: disable === true }),
        ...toMembers(options),
      };
      if (Object.keys(body).length === 0)
        throw new CommandFailure('nothing to change: tollgate clients set --help has all options');
      const client = await connectAuth(toSource(environment, options));
      const path = { client_id: id };
      const changed = await unwrap(
        client.PUT('/admin/oauth/clients/{client_id}', { params: { path }, body }),
      );
      if (options.json) return printJson(terminal, changed);
      printClients(terminal, [changed]);
    });
}

function rotateSecretCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('rotate-secret', 'Replace the secret of a client. Its tokens end.', [
    'tollgate clients rotate-secret 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10 > secret',
  ])
    .argument('<id>', whichClient)
    .action(async (id: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const path = { client_id: id };
      const changed = await unwrap(
        client.POST('/admin/oauth/clients/{client_id}/regenerate_secret', { params: { path } }),
      );
      printCreated(terminal, changed, options);
    });
}

function deleteCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('delete', 'Delete an OAuth client. Its tokens end, also at the gateway.', [
    'tollgate clients delete 0e1f6b4c-5f3b-4b6e-9f43-1c7c2c1a8f10',
  ])
    .argument('<id>', whichClient)
    .action(async (id: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const path = { client_id: id };
      await unwrap(client.DELETE('/admin/oauth/clients/{client_id}', { params: { path } }));
      if (options.json) printJson(terminal, {});
      else terminal.warn(`the client ${id} is deleted`);
    });
}
