import { exitOnStopSignal } from '@tollgate/kit/stop-signals';
import packageJson from '../../package.json' with { type: 'json' };
import { userFilters } from '../admin/user-filters.ts';
import {
  type Command,
  type CommandOptions,
  type Commands,
  type Flag,
  type FlagNameOf,
  parseArguments,
} from './arguments.ts';
import { helpText } from './help.ts';

/** Loads the code of a command when it runs. */
function lazily(load: () => Promise<Command>): Command {
  return async (options) => (await load())(options);
}

async function serveCommand({ environmentFiles }: CommandOptions): Promise<void> {
  // Signals work before the code of the server is loaded, which takes longest.
  const takeOver = exitOnStopSignal({ signals: process, exit: (code) => process.exit(code) });
  const { serve } = await import('./serve.ts');
  await serve(environmentFiles, takeOver);
}

const aud = { value: 'audience', doc: 'Audience of the user. Default: that of the settings.' };
const user = '<email, phone or id>';
const keyFile = {
  value: 'file',
  doc: 'File with the keys. Default: SVC_JWT_KEYS_FILE. Without both, SVC_JWT_KEYS is read and the result printed.',
};
const passwordDetails = `The password is read from the terminal, where it is not shown, or from standard input. It is never an
argument: other users of the machine can see those.`;

type FilterFlag = FlagNameOf<keyof typeof userFilters>;

/** A flag for each filter of the admin API. */
const filterFlags = Object.fromEntries(
  Object.entries(userFilters).map(([name, doc]) => [name.replaceAll('_', '-'), { value: 'text', doc }]),
) as Record<FilterFlag, Flag>; // FlagNameOf replaces the same characters

const userCommands: Commands = {
  'users list': {
    doc: 'List users, newest first.',
    run: lazily(async () => (await import('./users.ts')).listUsersCommand),
    flags: {
      ...filterFlags,
      aud,
      limit: { value: 'count', doc: 'Users of a page, 1 to 1000. Default 50.' },
      cursor: { value: 'cursor', doc: 'Start of the next page, which the previous one prints.' },
      json: { doc: 'Print users as JSON, one per line, as `import` reads them.' },
    },
  },
  'users get': {
    doc: 'Print a user as JSON.',
    run: lazily(async () => (await import('./users.ts')).getUserCommand),
    args: [user],
    flags: { aud },
  },
  'users ban': {
    doc: 'Ban a user: no sign-in and no new tokens.',
    run: lazily(async () => (await import('./users.ts')).banUserCommand),
    args: [user],
    flags: { aud, for: { value: 'duration', doc: 'Such as 30m or 24h. Default: 100 years.' } },
  },
  'users unban': {
    doc: 'Lift the ban of a user.',
    run: lazily(async () => (await import('./users.ts')).unbanUserCommand),
    args: [user],
    flags: { aud },
  },
  'users set-password': {
    doc: 'Set the password of a user, and end all sessions.',
    run: lazily(async () => (await import('./users.ts')).setPasswordCommand),
    args: [user],
    flags: { aud },
    details: passwordDetails,
  },
  'users sign-out': {
    doc: 'End all sessions of a user.',
    run: lazily(async () => (await import('./users.ts')).signOutCommand),
    args: [user],
    flags: { aud },
  },
  'users reset-factor': {
    doc: 'Remove the second factors of a user, or one of them, with the recovery codes of the last one.',
    run: lazily(async () => (await import('./users.ts')).resetFactorCommand),
    args: [user, '[factor id]'],
    flags: { aud },
  },
  'users plan': {
    doc: 'Print or set the plan of a user, which rate limits use.',
    run: lazily(async () => (await import('./users.ts')).planCommand),
    args: [user, '[plan]'],
    flags: { aud, remove: { doc: 'Remove the plan: the default of the settings applies.' } },
  },
};

const organization = '<id or slug>';

const orgCommands: Commands = {
  'orgs list': {
    doc: 'List organizations, newest first.',
    run: lazily(async () => (await import('./orgs.ts')).listOrgsCommand),
    flags: {
      plan: { value: 'text', doc: 'The plan.' },
      'without-owner': { doc: 'Only organizations whose owners were deleted.' },
      limit: { value: 'text', doc: 'Organizations of a page, 1 to 1000. Default 50.' },
      cursor: { value: 'cursor', doc: 'Start of the next page, which the previous one prints.' },
      json: { doc: 'Print organizations as JSON, one per line.' },
    },
  },
  'orgs create': {
    doc: 'Create an organization and print its id.',
    run: lazily(async () => (await import('./orgs.ts')).createOrgCommand),
    args: ['<name>'],
    flags: {
      slug: { value: 'slug', doc: 'Unique name for URLs. Default: made of the name.' },
      owner: { value: 'user', doc: 'Email, phone or id of the owner.' },
      plan: { value: 'text', doc: 'The plan.' },
      aud,
    },
  },
  'orgs get': {
    doc: 'Print an organization and its members as JSON.',
    run: lazily(async () => (await import('./orgs.ts')).getOrgCommand),
    args: [organization],
  },
  'orgs set': {
    doc: 'Set plan and limit of an organization.',
    run: lazily(async () => (await import('./orgs.ts')).setOrgCommand),
    args: [organization],
    flags: {
      plan: { value: 'text', doc: 'The plan. An empty text removes it.' },
      limit: { value: 'text', doc: 'Requests and unit, such as 100/minute. An empty text removes it.' },
    },
  },
  'orgs put-member': {
    doc: 'Add a user to an organization, or change the role.',
    run: lazily(async () => (await import('./orgs.ts')).putMemberCommand),
    args: [organization, user],
    flags: { role: { value: 'role', doc: 'Role in the organization. Default: member.' }, aud },
  },
  'orgs remove-member': {
    doc: 'Remove a user from an organization.',
    run: lazily(async () => (await import('./orgs.ts')).removeMemberCommand),
    args: [organization, user],
    flags: { aud },
  },
  'orgs delete': {
    doc: 'Delete an organization.',
    run: lazily(async () => (await import('./orgs.ts')).deleteOrgCommand),
    args: [organization],
  },
};

const keyDetails = `A rotation without rejected tokens has three steps, each after a waiting time that the previous one prints:
  new      adds a key, which is published in the JWKS and does not sign yet
  rotate   signs with it, once all replicas and caches of the JWKS have it
  retire   removes the old key, once its last tokens have expired
A step that comes too early is refused, unless --force is given.`;

const keyCommands: Commands = {
  'signing-keys new': {
    doc: 'Add a JWT key that does not sign yet.',
    run: lazily(async () => (await import('./signing-keys.ts')).newKeyCommand),
    flags: { file: keyFile, alg: { value: 'algorithm', doc: 'ES256 (the default), RS256 or EdDSA.' } },
    details: keyDetails,
  },
  'signing-keys rotate': {
    doc: 'Sign with the key that `new` has added.',
    run: lazily(async () => (await import('./signing-keys.ts')).rotateKeyCommand),
    flags: { file: keyFile, force: { doc: 'Do not wait for caches of the JWKS.' } },
    details: keyDetails,
  },
  'signing-keys retire': {
    doc: 'Remove keys that no longer sign, or one of them.',
    run: lazily(async () => (await import('./signing-keys.ts')).retireKeyCommand),
    args: ['[kid]'],
    flags: { file: keyFile, force: { doc: 'Do not wait until tokens have expired: they are rejected.' } },
    details: keyDetails,
  },
};

const webhook = '<name>';

const webhookCommands: Commands = {
  'webhooks list': {
    doc: 'List the endpoints of events, with their last failure.',
    run: lazily(async () => (await import('./webhooks.ts')).listWebhooksCommand),
    flags: { json: { doc: 'Print them as JSON, one per line.' } },
  },
  'webhooks add': {
    doc: 'Add an endpoint of events, and print its secret.',
    run: lazily(async () => (await import('./webhooks.ts')).addWebhookCommand),
    args: [webhook, '<url>'],
    flags: { events: { value: 'types', doc: 'Types of events, separated by commas. Default: all.' } },
  },
  'webhooks rotate': {
    doc: 'Give an endpoint a new secret, and print it.',
    run: lazily(async () => (await import('./webhooks.ts')).rotateWebhookCommand),
    args: [webhook],
    flags: { grace: { value: 'duration', doc: 'How long the old secret signs, too. Default: 24h.' } },
  },
  'webhooks test': {
    doc: 'Post a test event to an endpoint.',
    run: lazily(async () => (await import('./webhooks.ts')).testWebhookCommand),
    args: [webhook],
  },
  'webhooks remove': {
    doc: 'Remove an endpoint, and the events that wait for it.',
    run: lazily(async () => (await import('./webhooks.ts')).removeWebhookCommand),
    args: [webhook],
  },
};

const clientId = '<client id>';
const clientDetails = `The result has the lines CLIENT_ID=… and CLIENT_SECRET=…, the latter unless the client signs. The secret is shown once.`;

const clientCommands: Commands = {
  'clients list': {
    doc: 'List OAuth clients, newest first.',
    run: lazily(async () => (await import('./clients.ts')).listClientsCommand),
    flags: { json: { doc: 'Print clients as JSON, one per line.' } },
  },
  'clients create': {
    doc: 'Create a machine client, which gets tokens with client_credentials.',
    run: lazily(async () => (await import('./clients.ts')).createClientCommand),
    args: ['<name>'],
    flags: {
      scopes: { value: 'names', doc: 'Scopes that it may have, separated by commas.' },
      audiences: { value: 'urls', doc: 'Resources that its tokens are for, separated by commas.' },
      plan: { value: 'text', doc: 'Plan, which rate limits use.' },
      role: { value: 'role', doc: 'Role at the gateway.' },
      'jwks-uri': { value: 'url', doc: 'URL of its keys: it signs assertions, and has no secret.' },
    },
    details: clientDetails,
  },
  'clients delete': {
    doc: 'Delete an OAuth client, and end its tokens.',
    run: lazily(async () => (await import('./clients.ts')).deleteClientCommand),
    args: [clientId],
  },
  'clients rotate-secret': {
    doc: 'Replace the secret of an OAuth client, and end its tokens.',
    run: lazily(async () => (await import('./clients.ts')).rotateClientSecretCommand),
    args: [clientId],
    details: clientDetails,
  },
};

const keyOwner = {
  user: { value: 'user', doc: 'Email, phone or id of the user who owns the key.' },
  org: { value: 'id', doc: 'Id of the organization that owns the key.' },
};

const apiKeyCommands: Commands = {
  'api-keys list': {
    doc: 'List API keys, newest first.',
    run: lazily(async () => (await import('./api-keys.ts')).listApiKeysCommand),
    flags: {
      ...keyOwner,
      plan: { value: 'text', doc: 'Only keys with this plan of their own.' },
      limit: { value: 'number', doc: 'Keys to list, 1 to 1000. Default: 50.' },
      cursor: { value: 'cursor', doc: 'Continue after a page.' },
      json: { doc: 'Print them as JSON, one per line.' },
    },
  },
  'api-keys create': {
    doc: 'Create an API key, and print it. Without an owner it is that of a machine.',
    run: lazily(async () => (await import('./api-keys.ts')).createApiKeyCommand),
    args: ['<name>'],
    flags: {
      ...keyOwner,
      plan: { value: 'text', doc: 'Plan of the key. Default: that of the owner.' },
      role: { value: 'role', doc: 'Role of the key. Default: that of the owner.' },
      scopes: { value: 'scopes', doc: 'Scopes, separated by commas.' },
      for: { value: 'duration', doc: 'Time until it expires, such as 720h. Default: it does not.' },
    },
  },
  'api-keys rotate': {
    doc: 'Replace an API key, and print the new one.',
    run: lazily(async () => (await import('./api-keys.ts')).rotateApiKeyCommand),
    args: ['<id>'],
    flags: {
      grace: { value: 'duration', doc: 'How long the old key stays valid. Default: it ends at once.' },
    },
  },
  'api-keys revoke': {
    doc: 'Revoke an API key.',
    run: lazily(async () => (await import('./api-keys.ts')).revokeApiKeyCommand),
    args: ['<id>'],
  },
};

export const commands: Commands = {
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
    flags: {
      'env-file': { value: 'file', doc: 'Variables to check, instead of the environment.' },
      'database-url': { value: 'url', doc: 'Database to check, instead of that of the variables.' },
      json: { doc: 'Print the report as JSON.' },
      asvs: { doc: 'Print which requirements of OWASP ASVS 5.0 level 2 hold, and the settings that decide.' },
    },
  },
  ...userCommands,
  'admin createuser': {
    doc: 'Create a user and print the id.',
    run: lazily(async () => (await import('./admin.ts')).createUserCommand),
    args: ['<email>'],
    flags: {
      aud,
      role: { value: 'role', doc: 'Role of the user. Default: that of the settings.' },
      confirm: { doc: 'Create the user with a confirmed email address.' },
    },
    details: passwordDetails,
  },
  'admin deleteuser': {
    doc: 'Delete a user.',
    run: lazily(async () => (await import('./admin.ts')).deleteUserCommand),
    args: [user],
    flags: { aud },
  },
  'admin reencrypt': {
    doc: 'Encrypt existing values with the current key.',
    run: lazily(async () => (await import('./admin.ts')).reencryptCommand),
  },
  'admin token': {
    doc: 'Print a token for the admin API. It does not expire: use it in servers only.',
    run: lazily(async () => (await import('./token.ts')).tokenCommand),
    flags: { role: { value: 'role', doc: 'Role of the token. Default: the first of SVC_JWT_ADMIN_ROLES.' } },
  },
  ...clientCommands,
  ...orgCommands,
  ...keyCommands,
  ...webhookCommands,
  ...apiKeyCommands,
  import: {
    doc: 'Import users from a file of JSON lines, or from standard input (-).',
    run: lazily(async () => (await import('./import.ts')).importCommand),
    args: ['<file>'],
    flags: {
      'dry-run': { doc: 'Check the users of an import, and import none.' },
      errors: { value: 'file', doc: 'Write lines that cannot be imported, with the reason, as JSON lines.' },
      'resume-from': {
        value: 'line',
        doc: 'Line to start an import with. Users that are present are skipped anyway.',
      },
    },
  },
  routes: {
    doc: 'Validate the route rules and print them, or the rules that match requests.',
    run: lazily(async () => (await import('./routes.ts')).routesCommand),
    args: ['[method path …]'],
    flags: {
      file: { value: 'file', doc: 'Route rules. Default: the file of the settings.' },
      'to-policy': { doc: 'Print an AccessPolicy that decides as the file does.' },
      name: { value: 'name', doc: 'Name of the policy. Default routes.' },
      namespace: { value: 'namespace', doc: 'Namespace of the policy. Default: default.' },
      hosts: { value: 'hosts', doc: 'Hosts of the policy, separated by commas. Default: every host.' },
    },
    details:
      'The file has no numbers of limits: --to-policy writes 0, which denies, and a comment. What an\nAccessPolicy cannot say is an error.',
  },
  explain: {
    doc: 'Print how a running server would decide a request, with policies, limits and counters.',
    run: lazily(async () => (await import('./explain.ts')).explainCommand),
    args: ['<method>', '<url>'],
    flags: {
      server: { value: 'url', doc: 'URL of the server. Default: that of the settings on this machine.' },
      policy: { value: 'namespace/name', doc: 'Policy to apply, instead of the one that is found.' },
      as: { value: 'caller', doc: 'user:<id>, key:<id> or client:<id>. Default: no credential.' },
      credential: { doc: 'Read an access token or an API key from standard input.' },
      aal: { value: 'level', doc: 'Assurance level of the session: aal1, aal2 or aal3. Default aal1.' },
      scopes: { value: 'scopes', doc: 'Scopes of the token, separated by spaces.' },
      aud: { value: 'audience', doc: 'Audience of the token.' },
      org: { value: 'id', doc: 'Active organization of the user.' },
      address: { value: 'ip', doc: 'Address of the client.' },
      headers: { value: 'name: value', doc: 'Headers of the request, one a line. No credentials.' },
      route: {
        value: 'kind/namespace/name/section',
        doc: 'Route that Envoy Gateway would say. The section is that of a rule with a name.',
      },
    },
  },
  'issuers check': {
    doc: 'Print the metadata and keys of another issuer, and why a token is accepted or not.',
    run: lazily(async () => (await import('./issuers.ts')).checkIssuersCommand),
    args: ['[issuer]'],
    flags: {
      file: { value: 'file', doc: 'Route rules whose issuers are checked, instead of the argument.' },
      aud: { value: 'audience', doc: 'Audience that the token must have.' },
    },
    details:
      'The token is read from standard input. It is never an argument: other users of the machine can see those.',
  },
  version: { doc: 'Print the version.', run: printVersion },
};

/** Runs a command. Sets the exit code 2 if the arguments are invalid. */
export async function runCommand(args: readonly string[]): Promise<void> {
  const parsed = parseArguments(args, commands);
  if (parsed.kind === 'run') return parsed.run(parsed.options);
  if (parsed.kind === 'help') process.stdout.write(helpText(commands, parsed.command));
  else {
    const hint = ['tollgate-auth', parsed.command, '--help'].filter(Boolean).join(' ');
    process.stderr.write(`${parsed.problem}\n${hint} shows how to call it\n`);
    process.exitCode = 2;
  }
}

async function printVersion(): Promise<void> {
  await new Promise((resolve) => process.stdout.write(`tollgate-auth ${packageJson.version}\n`, resolve));
}
