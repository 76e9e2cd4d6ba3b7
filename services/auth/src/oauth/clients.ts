import { isFirstPartyClient } from '@tollgate/admin-clients/first-party';
import type { JsonObject } from '@tollgate/kit/json';
import { parseLimitOverride } from '@tollgate/policies/decide/limit-override';
import type { AuditAction } from '../audit/actions.ts';
import { type AuditActor, auditEntry } from '../audit/audit-log.ts';
import { describeChanges } from '../audit/changes.ts';
import type { Transactions } from '../db/connection.ts';
import { errors } from '../errors.ts';
import { hashClientSecret } from '../keys/client-tokens.ts';
import type { OrganizationStore } from '../organizations/store.ts';
import { findUrlProblem } from '../outbound/fetch.ts';
import { type AdminRequest, checkScopes } from '../sessions/admin-request.ts';
import { isAdminScope, toAdminScopes } from '../sessions/admin-scopes.ts';
import type { SessionsContext } from '../sessions/context.ts';
import { applyInput, type ClientInput, newClient, readClientType } from './client-input.ts';
import type { OAuthClient, OAuthClientStore, StoredClient } from './client-store.ts';

export type OAuthContext = SessionsContext & {
  readonly store: Transactions & {
    readonly oauthClients: OAuthClientStore;
    readonly organizations: Pick<OrganizationStore, 'find'>;
  };
};

/** A client and its secret, which is shown once. Undefined: it has none. */
export interface ClientWithSecret {
  readonly client: OAuthClient;
  readonly secret: string | undefined;
}

const secretBytes = 32;

/** @throws AppError `oauth_client_not_found` */
export async function getClient({ store }: OAuthContext, id: string): Promise<StoredClient> {
  const client = await store.oauthClients.find(id);
  if (client === undefined) throw errors.oauth_client_not_found();
  return client;
}

/** @throws AppError `validation_failed` */
export async function createClient(
  context: OAuthContext,
  input: ClientInput,
  request: AdminRequest & { readonly registrationType?: OAuthClient['registration_type'] },
): Promise<ClientWithSecret> {
  const { random, settings, store } = context;
  const at = new Date(request.metadata.nowMs);
  const type = readClientType(input);
  const { registrationType: registration_type = newClient.registration_type } = request;
  const checked = applyInput({ ...newClient, ...type, registration_type }, input, settings);
  checkAdminScopes(request, [checked]);
  await checkMore(context, checked);
  const hasSecret =
    type.client_type === 'confidential' && type.token_endpoint_auth_method !== 'private_key_jwt';
  const secret = hasSecret ? random.bytes(secretBytes).toString('base64url') : undefined;
  const client: OAuthClient = {
    ...checked,
    id: random.uuid(),
    client_secret_hash: secret === undefined ? '' : hashClientSecret(secret),
    created_at: at,
    updated_at: at,
  };
  await store.oauthClients.insert(client, clientAudit('oauth_client_created', client, request));
  return { client, secret };
}

/** @throws AppError `validation_failed`, `oauth_client_not_found`, `conflict` */
export async function updateClient(
  context: OAuthContext,
  id: string,
  { input, request }: { readonly input: ClientInput; readonly request: AdminRequest },
): Promise<OAuthClient> {
  const { metadata = {}, ...others } = input;
  const changed = Object.entries({ ...others, ...metadata }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (changed.length === 0) throw errors.validation_failed({ message: 'No fields provided for update' });
  checkNotBuiltIn(id);
  const before = await getClient(context, id);
  if (changed.some((name) => name === 'client_type' || name === 'token_endpoint_auth_method'))
    throw errors.validation_failed({
      message: 'client_type and token_endpoint_auth_method cannot be changed: create another client',
    });
  const updated_at = new Date(request.metadata.nowMs);
  const client = { ...applyInput(before, input, context.settings), updated_at };
  checkAdminScopes(request, [before, client]);
  await checkMore(context, client);
  const audit = clientAudit('oauth_client_updated', client, request, describeUpdate(before, client, changed));
  const isUpdated = await changeAccess(context, id, {
    change: (clients) => clients.update(client, audit),
    ends: client.disabled || hasLostAdminScope(before, client),
  });
  if (!isUpdated) throw errors.conflict();
  return client;
}

/** @throws AppError `oauth_client_not_found` */
export async function deleteClient(
  context: OAuthContext,
  id: string,
  request: AdminRequest,
): Promise<OAuthClient> {
  checkNotBuiltIn(id);
  const client = await getClient(context, id);
  const change = {
    at: new Date(request.metadata.nowMs),
    audit: clientAudit('oauth_client_deleted', client, request),
  };
  const isDeleted = await changeAccess(context, id, {
    change: (clients) => clients.delete(id, change),
    ends: true,
  });
  if (!isDeleted) throw errors.oauth_client_not_found();
  return client;
}

/** Changes a client, and ends its sessions if `ends`. Returns what `change` does. */
export function changeAccess(
  { store }: OAuthContext,
  id: string,
  {
    change,
    ends,
  }: { readonly change: (clients: OAuthClientStore) => Promise<boolean>; readonly ends: boolean },
): Promise<boolean> {
  return store.transaction(async ({ oauthClients }) => {
    const isChanged = await change(oauthClients);
    if (isChanged && ends) await oauthClients.endSessions(id);
    return isChanged;
  });
}

/**
 * Replaces the secret, and ends the tokens of the client.
 *
 * @throws AppError `validation_failed`, `oauth_client_not_found`
 */
export async function regenerateSecret(
  context: OAuthContext,
  id: string,
  request: AdminRequest,
): Promise<ClientWithSecret> {
  const client = await getClient(context, id);
  checkAdminScopes(request, [client]);
  if (client.client_type === 'public')
    throw errors.validation_failed({ message: 'Cannot regenerate secret for public client' });
  if (client.token_endpoint_auth_method === 'private_key_jwt')
    throw errors.validation_failed({ message: 'A client with private_key_jwt has no secret' });
  const secret = context.random.bytes(secretBytes).toString('base64url');
  const at = new Date(request.metadata.nowMs);
  const change = {
    secretHash: hashClientSecret(secret),
    at,
    audit: clientAudit('oauth_client_secret_regenerated', client, request),
  };
  if (!(await context.store.oauthClients.replaceSecret(id, change))) throw errors.oauth_client_not_found();
  return { client: { ...client, updated_at: at }, secret };
}

/** Whether tokens of sessions have an admin scope that the client has no more. */
function hasLostAdminScope(before: OAuthClient, after: OAuthClient): boolean {
  return before.scopes.some((scope) => isAdminScope(scope) && !after.scopes.includes(scope));
}

/**
 * Checks that the caller has the admin scopes of a client: who changes its redirect URIs or knows
 * its secret can get the tokens that administrators give it.
 *
 * @throws AppError `insufficient_scope`
 */
function checkAdminScopes(request: AdminRequest, clients: readonly Pick<OAuthClient, 'scopes'>[]): void {
  const scopes = clients.flatMap((client) => client.scopes);
  checkScopes(request, [...toAdminScopes(scopes.join(' '))]);
}

/**
 * The settings say what a client of Tollgate's own programs is. Its redirect URI gets tokens of
 * administrators.
 *
 * @throws AppError `validation_failed`
 */
function checkNotBuiltIn(id: string): void {
  if (!isFirstPartyClient(id)) return;
  throw errors.validation_failed({
    message:
      'This client is built in, and cannot be changed: SVC_OAUTH_SERVER_CONSOLE_URL and SVC_OAUTH_SERVER_CLI_ENABLED say whether it exists',
  });
}

/** Checks that need other parts. @throws AppError `validation_failed` */
async function checkMore(
  { settings, store }: OAuthContext,
  {
    rate_limit: limit,
    jwks_uri: keysUri,
    org_id: orgId,
    metadata: { backchannel_logout_uri: logoutUri },
  }: Pick<OAuthClient, 'rate_limit' | 'jwks_uri' | 'org_id' | 'metadata'>,
): Promise<void> {
  if (settings.organizationsEnabled && orgId !== null && !(await store.organizations.find(orgId)))
    throw errors.validation_failed({ message: 'org_id is not the id of an organization' });
  const parsed = parseLimitOverride(limit);
  if (!parsed.ok) throw errors.validation_failed({ message: `limit cannot be used: ${parsed.reason}` });
  // Checked again with each request: the name may be resolved to another address then.
  for (const [name, uri] of Object.entries({ jwks_uri: keysUri, backchannel_logout_uri: logoutUri })) {
    const problem = uri && (await findFetchedUriProblem(uri, settings.oauthServerPrivateHosts));
    if (problem) throw errors.validation_failed({ message: `${name} cannot be used: ${problem}` });
  }
}

async function findFetchedUriProblem(
  uri: string,
  privateHosts: readonly string[],
): Promise<string | undefined> {
  const { protocol, hostname } = new URL(uri);
  if (protocol !== 'https:' && !privateHosts.includes(hostname)) return 'it is not an https URL';
  return findUrlProblem(uri, privateHosts);
}

/** The members that differ, for the audit log. */
export function describeUpdate(
  before: OAuthClient,
  after: OAuthClient,
  names?: readonly string[],
): ReturnType<typeof describeChanges> {
  const [old, now] = [toClientJson(before), toClientJson(after)];
  const compared = names ?? Object.keys({ ...old, ...now });
  return describeChanges(compared.map((name) => ({ name, before: old[name], after: now[name] })));
}

/** Who registers a client that needs no administrator. */
export const anyone: AuditActor = {
  ...{ kind: 'unauthenticated', id: '', email: '', phone: '', userMetadata: {} },
};

export function clientAudit(
  action: AuditAction,
  { id, client_name: name }: Pick<OAuthClient, 'id' | 'client_name'>,
  { actor, metadata }: AdminRequest,
  more?: JsonObject,
) {
  const traits = { client_id: id, ...(name !== null && { client_name: name }), ...more };
  return auditEntry(actor, action, { metadata, traits });
}

/** The members of GoTrue's API, and those of ours that are set. */
export function toClientJson(client: OAuthClient, secret?: string): JsonObject {
  const optional = {
    client_name: client.client_name,
    client_uri: client.client_uri,
    logo_uri: client.logo_uri,
    jwks: client.jwks,
    jwks_uri: client.jwks_uri,
    scopes: client.scopes,
    audiences: client.audiences,
    plan: client.plan,
    role: client.role,
    limit: client.rate_limit,
    org_id: client.org_id,
    disabled: client.disabled,
    document_url: client.document_url,
    ...client.metadata,
    built_in: isFirstPartyClient(client.id),
  };
  const isSet = ([, value]: readonly [string, unknown]): boolean =>
    value !== null && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);
  return {
    client_id: client.id,
    ...(secret !== undefined && { client_secret: secret }),
    client_type: client.client_type,
    redirect_uris: client.redirect_uris,
    token_endpoint_auth_method: client.token_endpoint_auth_method,
    grant_types: client.grant_types,
    response_types: client.grant_types.includes('authorization_code') ? ['code'] : [],
    ...Object.fromEntries(Object.entries(optional).filter(isSet)),
    registration_type: client.registration_type,
    created_at: client.created_at.toISOString(),
    updated_at: client.updated_at.toISOString(),
  };
}
