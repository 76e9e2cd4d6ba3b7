import { isUuid } from '@tollgate/kit/text';
import type { Context } from '../app/context.ts';
import type { OAuthClient } from '../oauth/client-store.ts';
import {
  type ClientWithSecret,
  createClient,
  deleteClient,
  regenerateSecret,
  toClientJson,
} from '../oauth/clients.ts';
import type { Command } from './arguments.ts';
import { CommandError, metadataNow, operator, withContext } from './operator.ts';
import { formatTable } from './routes.ts';

const request = () => ({ actor: operator, metadata: metadataNow() });

const maxClients = 1000;

/** `clients list`: a table or JSON lines. */
export const listClientsCommand: Command = ({ environmentFiles, flags }) =>
  withContext(environmentFiles, async ({ store }) => {
    const { items: clients, total } = await store.oauthClients.list({ limit: maxClients, offset: 0 });
    if (total > maxClients) process.stderr.write(`the newest ${maxClients} of ${total} clients:\n`);
    if (flags.json === true) return clients.map((one) => JSON.stringify(toClientJson(one))).join('\n');
    const header = ['ID', 'NAME', 'GRANTS', 'SCOPES', 'PLAN', 'CREATED', 'STATE'];
    return formatTable([header, ...clients.map(toRow)]).trimEnd();
  });

function toRow(client: OAuthClient): string[] {
  const {
    id,
    client_name: name,
    grant_types: grants,
    scopes,
    plan,
    created_at: createdAt,
    disabled,
  } = client;
  const state = disabled ? 'disabled' : 'active';
  return [id, name ?? '-', grants.join(), scopes.join() || '-', plan ?? '-', createdAt.toISOString(), state];
}

/** `clients create`: prints the id and the secret. */
export const createClientCommand: Command = ({ environmentFiles, args: [name = ''], flags }) =>
  withContext(environmentFiles, async (context) => {
    const { plan, role, scopes, audiences, 'jwks-uri': uri } = flags;
    const created = await createClient(
      context,
      {
        client_name: name,
        grant_types: ['client_credentials'],
        ...(uri !== undefined && { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: uri }),
        scopes: splitNames(scopes),
        audiences: splitNames(audiences),
        plan,
        role,
      },
      request(),
    );
    warnIfDisabled(context);
    return formatSecret(created);
  });

function splitNames(text = ''): readonly string[] {
  return text.split(/[\s,]+/).filter((name) => name !== '');
}

/** `clients delete` */
export const deleteClientCommand: Command = ({ environmentFiles, args: [id = ''] }) =>
  withContext(environmentFiles, async (context) => {
    const { client_name: name } = await deleteClient(context, readId(id), request());
    return `${name ?? id} is deleted, and its tokens have ended`;
  });

/** `clients rotate-secret`: prints the new secret. */
export const rotateClientSecretCommand: Command = ({ environmentFiles, args: [id = ''] }) =>
  withContext(environmentFiles, async (context) =>
    formatSecret(await regenerateSecret(context, readId(id), request())),
  );

function readId(id: string): string {
  if (!isUuid(id)) throw new CommandError(`not the id of a client: ${id}`);
  return id.toLowerCase();
}

/** Lines of an environment file. */
function formatSecret({ client, secret }: ClientWithSecret): string {
  return [`CLIENT_ID=${client.id}`, ...(secret === undefined ? [] : [`CLIENT_SECRET=${secret}`])].join('\n');
}

function warnIfDisabled({ settings }: Context): void {
  if (!settings.oauthServerEnabled)
    process.stderr.write('OAUTH_SERVER_ENABLED is not true: the client gets no tokens yet\n');
}
