import { parseDuration } from '@tollgate/kit/time';
import { encodeCursor, parseCursor } from '../admin/list-pages.ts';
import { type ApiKey, type KeyOwner, toKeyJson } from '../api-keys/api-key.ts';
import { createApiKey, getApiKey, requireApiKeys, revokeApiKey, rotateApiKey } from '../api-keys/keys.ts';
import type { Context } from '../app/context.ts';
import type { Command, CommandFlags } from './arguments.ts';
import { CommandError, findUser, metadataNow, operator, withContext } from './operator.ts';
import { formatTable } from './routes.ts';

const request = () => ({ actor: operator, metadata: metadataNow() });

/** `api-keys list`: newest first; the cursor of the next page on standard error. */
export const listApiKeysCommand: Command = ({ environmentFiles, flags }) =>
  withContext(environmentFiles, async (context) => {
    requireApiKeys(context);
    const { userId, orgId } = await readOwner(context, flags);
    const filter = {
      ...(userId !== undefined && { userId }),
      ...(orgId !== undefined && { orgId }),
      ...(flags.plan !== undefined && { plan: flags.plan }),
    };
    const page = parseCursor({ cursor: flags.cursor ?? '', limit: flags.limit ?? '' });
    const { items, next } = await context.store.apiKeys.listAfter(filter, page);
    if (next) process.stderr.write(`more keys: --cursor ${encodeCursor(next)}\n`);
    if (flags.json === true) return items.map((key) => JSON.stringify(toKeyJson(key))).join('\n');
    const header = ['ID', 'NAME', 'KEY', 'OWNER', 'PLAN', 'CREATED', 'LAST USED', 'STATE'];
    return formatTable([header, ...items.map(toRow)]).trimEnd();
  });

function toRow(key: ApiKey): string[] {
  const { user_id: userId, org_id: orgId } = key;
  const owner = userId !== null ? `user ${userId}` : orgId !== null ? `organization ${orgId}` : 'machine';
  return [
    key.id,
    // Users choose names, and a terminal obeys control characters.
    key.name.replaceAll(/\p{C}/gu, '?'),
    `${key.prefix}_…${key.last4}`,
    owner,
    key.plan ?? '-',
    key.created_at.toISOString().slice(0, 10),
    key.last_used_at?.toISOString().slice(0, 16) ?? 'never',
    stateOf(key),
  ];
}

function stateOf({ disabled, expires_at: expiresAt }: ApiKey): string {
  if (disabled) return 'disabled';
  if (expiresAt === null) return 'active';
  const day = expiresAt.toISOString().slice(0, 10);
  return expiresAt.getTime() <= Date.now() ? 'expired' : `expires ${day}`;
}

/** `api-keys create`: prints the key. */
export const createApiKeyCommand: Command = ({ environmentFiles, args: [name = ''], flags }) =>
  withContext(environmentFiles, async (context) => {
    requireApiKeys(context);
    const owner = await readOwner(context, flags);
    const input = {
      name,
      plan: flags.plan,
      role: flags.role,
      scopes: flags.scopes?.split(',').map((scope) => scope.trim()),
      expires_at: flags.for === undefined ? undefined : endOf(flags.for),
    };
    const { text } = await createApiKey(context, { owner, input }, request());
    return text;
  });

function endOf(text: string): string {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) throw new CommandError('--for must be a duration such as 720h');
  return new Date(Date.now() + durationMs).toISOString();
}

/** `api-keys rotate`: prints the new key. */
export const rotateApiKeyCommand: Command = ({ environmentFiles, args: [id = ''], flags: { grace } }) =>
  withContext(environmentFiles, async (context) => {
    requireApiKeys(context);
    const old = await getApiKey(context, id);
    const { text } = await rotateApiKey(context, { old, grace }, request());
    return text;
  });

/** `api-keys revoke` */
export const revokeApiKeyCommand: Command = ({ environmentFiles, args: [id = ''] }) =>
  withContext(environmentFiles, async (context) => {
    requireApiKeys(context);
    const key = await getApiKey(context, id);
    await revokeApiKey(context, key, request());
    return `${key.name} (${key.prefix}_…${key.last4}) is revoked`;
  });

async function readOwner(context: Context, { user, org }: CommandFlags): Promise<KeyOwner> {
  if (user !== undefined && org !== undefined) throw new CommandError('--user and --org exclude each other');
  if (user !== undefined) return { userId: (await findUser(context, user)).id };
  return org === undefined ? {} : { orgId: org };
}
