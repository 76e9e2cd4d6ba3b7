import type { JsonObject } from '@tollgate/kit/json';
import { isUuid } from '@tollgate/kit/text';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { parseKeySet } from '../issuers/key-set.ts';
import { jwtBearerGrantType } from '../keys/client-tokens.ts';
import { isAdminScope, isKnownAdminScope } from '../sessions/admin-scopes.ts';
import { type ClientMetadata, findMetadataProblem, mergeMetadata } from './client-metadata.ts';
import { type AuthMethod, authMethods, type OAuthClient } from './client-store.ts';
import { findRedirectUriProblem, isWebUri, maxUriChars } from './client-uris.ts';
import { grantTypes } from './grant.ts';
import { isScope } from './scopes.ts';

/** Members that administrators can set. Absent members are not changed, or have defaults. */
export interface ClientInput {
  readonly redirect_uris?: readonly string[] | undefined;
  readonly grant_types?: readonly string[] | undefined;
  readonly client_type?: string | undefined;
  readonly token_endpoint_auth_method?: string | undefined;
  readonly client_name?: string | undefined;
  readonly client_uri?: string | undefined;
  readonly logo_uri?: string | undefined;
  readonly jwks?: JsonObject | undefined;
  readonly jwks_uri?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly audiences?: readonly string[] | undefined;
  readonly plan?: string | undefined;
  readonly role?: string | undefined;
  readonly limit?: JsonObject | undefined;
  readonly org_id?: string | undefined;
  readonly disabled?: boolean | undefined;
  readonly metadata?: ClientMetadata | undefined;
}

type Checked = Omit<OAuthClient, 'id' | 'created_at' | 'updated_at' | 'client_secret_hash'>;

export const defaultGrants: readonly string[] = ['authorization_code', 'refresh_token'];

/** Bounds of lists, and of texts that tables, headers and tokens carry. */
const maxItems = 50;
const maxRedirectUris = 10;
const maxChars = { client_name: 1024, client_uri: 2048, logo_uri: 2048, plan: 255, role: 255 } as const;
/** A rotation needs two keys; each is tried for an assertion without `kid`. */
const maxKeys = 10;

export const newClient: Checked = {
  registration_type: 'manual',
  client_type: 'confidential',
  token_endpoint_auth_method: 'client_secret_basic',
  redirect_uris: [],
  grant_types: defaultGrants,
  client_name: null,
  client_uri: null,
  logo_uri: null,
  jwks: null,
  jwks_uri: null,
  scopes: [],
  audiences: [],
  plan: null,
  role: null,
  rate_limit: null,
  org_id: null,
  disabled: false,
  document_url: null,
  document_expires_at: null,
  metadata: {},
};

/**
 * Type and method of a new client: each follows from the other.
 *
 * @throws AppError `validation_failed`
 */
export function readClientType(
  input: ClientInput,
): Pick<Checked, 'client_type' | 'token_endpoint_auth_method'> {
  const { client_type: type, token_endpoint_auth_method: method } = input;
  if (type !== undefined && type !== 'public' && type !== 'confidential')
    throw invalid("client_type must be 'public' or 'confidential'");
  if (method !== undefined && !isAuthMethod(method))
    throw invalid(`token_endpoint_auth_method must be one of: ${authMethods.join(', ')}`);
  const expected = method === undefined ? type : method === 'none' ? 'public' : 'confidential';
  if (type !== undefined && type !== expected)
    throw invalid(`client_type '${type}' is inconsistent with token_endpoint_auth_method '${method}'`);
  const clientType = expected ?? 'confidential';
  return {
    client_type: clientType,
    token_endpoint_auth_method: method ?? (clientType === 'public' ? 'none' : 'client_secret_basic'),
  };
}

function isAuthMethod(text: string): text is AuthMethod {
  return authMethods.some((method) => method === text);
}

/**
 * Applies the given members to a client, and checks the result. Empty texts remove optional
 * members, and so does an empty object of `limit` or `jwks`.
 *
 * @throws AppError `validation_failed`
 */
export function applyInput<C extends Checked>(
  before: C,
  input: ClientInput,
  settings: Pick<Settings, 'jwtAdminRoles'>,
): C {
  const { limit, metadata = {}, client_type: _type, token_endpoint_auth_method: _method, ...members } = input;
  const given = Object.entries(members).flatMap(([name, value]) =>
    value === undefined || !Object.hasOwn(newClient, name) ? [] : [[name, isEmpty(value) ? null : value]],
  );
  const client: C = {
    ...before,
    ...Object.fromEntries(given),
    ...(limit !== undefined && { rate_limit: isEmpty(limit) ? null : limit }),
    metadata: mergeMetadata(before.metadata, metadata),
  };
  const problem = findProblem(client, settings);
  if (problem !== undefined) throw invalid(problem);
  return client;
}

/** Lists may be empty. */
function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return false;
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

function findProblem(
  client: Checked,
  { jwtAdminRoles }: Pick<Settings, 'jwtAdminRoles'>,
): string | undefined {
  const { role, org_id: orgId } = client;
  for (const name of ['client_name', 'client_uri', 'logo_uri', 'plan', 'role'] as const)
    if ((client[name]?.length ?? 0) > maxChars[name])
      return `${name} cannot exceed ${maxChars[name]} characters`;
  for (const name of ['client_uri', 'logo_uri', 'jwks_uri'] as const)
    if (client[name] !== null && !isWebUri(client[name])) return `${name} must be a valid URL`;
  if (role !== null && jwtAdminRoles.includes(role))
    return `role cannot be ${role}: clients are no administrators`;
  if (orgId !== null && !isUuid(orgId)) return 'org_id must be an UUID';
  return (
    findGrantProblem(client) ??
    findRedirectProblem(client) ??
    findKeyProblem(client) ??
    findListProblem(client) ??
    findMetadataProblem(client.metadata)
  );
}

function findGrantProblem({
  grant_types: grants,
  client_type: type,
  metadata: { workload_identities: workloads = [] },
}: Checked): string | undefined {
  if (grants.length === 0) return 'grant_types cannot be empty';
  if (!grants.every((grant) => Object.hasOwn(grantTypes, grant)))
    return `grant_types must only contain ${Object.keys(grantTypes).join(', ')}`;
  if (grants.includes(jwtBearerGrantType) !== workloads.length > 0)
    return `the grant type ${jwtBearerGrantType} and workload_identities need each other`;
  const confidential = Object.entries(grantTypes).find(
    ([name, clients]) => clients === 'confidential' && grants.includes(name),
  );
  return type === 'public' && confidential !== undefined
    ? `a public client cannot have the grant type ${confidential[0]}`
    : undefined;
}

function findRedirectProblem({ redirect_uris: uris, grant_types: grants }: Checked): string | undefined {
  if (uris.length === 0)
    return grants.includes('authorization_code') ? 'redirect_uris is required' : undefined;
  if (uris.length > maxRedirectUris) return `redirect_uris cannot exceed ${maxRedirectUris} items`;
  for (const uri of uris) {
    const problem = findRedirectUriProblem(uri);
    if (problem !== undefined) return `invalid redirect_uri '${uri.slice(0, 64)}': ${problem}`;
  }
  return undefined;
}

function findKeyProblem(client: Checked): string | undefined {
  const { token_endpoint_auth_method: method, jwks, jwks_uri: uri } = client;
  if (method !== 'private_key_jwt')
    return jwks === null && uri === null ? undefined : 'jwks and jwks_uri are for private_key_jwt only';
  if (jwks === null && uri === null) return 'private_key_jwt requires jwks or jwks_uri';
  if (jwks === null) return undefined;
  // RFC 7591 §2.
  if (uri !== null) return 'jwks and jwks_uri exclude each other';
  return findKeySetProblem(jwks);
}

function findKeySetProblem(jwks: JsonObject): string | undefined {
  const { keys } = jwks;
  const hasPrivate =
    Array.isArray(keys) && keys.some((key) => key !== null && Object.hasOwn(Object(key), 'd'));
  if (hasPrivate) return 'jwks has a private key: send public keys only';
  try {
    const { keys: usable } = parseKeySet(JSON.stringify(jwks));
    if (usable.length === 0 || usable.length > maxKeys) return `jwks must have 1 to ${maxKeys} keys`;
  } catch (error) {
    return `jwks cannot be used: ${error instanceof Error ? error.message : 'it is not a key set'}`;
  }
  return undefined;
}

function findListProblem({ scopes, audiences }: Checked): string | undefined {
  if (scopes.length > maxItems || !scopes.every(isScope))
    return `scopes must be at most ${maxItems} names of visible ASCII without quotation marks and backslashes`;
  const unknown = scopes.find((name) => isAdminScope(name) && !isKnownAdminScope(name));
  if (unknown !== undefined) return `scopes has an unknown scope of the admin API: ${unknown}`;
  if (audiences.length > maxItems || !audiences.every(isAudience))
    return `audiences must be at most ${maxItems} absolute URIs without fragment`;
  return undefined;
}

/** @see RFC 8707 §2 https://www.rfc-editor.org/rfc/rfc8707#section-2 */
export function isAudience(text: string): boolean {
  return text.length <= maxUriChars && URL.canParse(text) && !/[\s#]/.test(text);
}

function invalid(message: string) {
  return errors.validation_failed({ message });
}
