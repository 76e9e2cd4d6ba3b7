import type { JsonObject } from '@tollgate/kit/json';
import { discover } from '@tollgate/oauth2-client/discovery';
import type { AuditAction } from '../audit/actions.ts';
import { auditEntry } from '../audit/audit-log.ts';
import { describeChanges } from '../audit/changes.ts';
import { errors } from '../errors.ts';
import { discoveryFetch } from '../identity-providers/custom.ts';
import { findUrlProblem } from '../outbound/fetch.ts';
import type { AdminRequest } from '../sessions/admin-request.ts';
import type { ProvidersContext } from './connections.ts';
import type { StoredProvider } from './custom-store.ts';

/** A provider as sent by an administrator. Absent members are not changed, or have defaults. */
export type ProviderInput = { readonly [K in Exclude<keyof StoredProvider, OwnMember>]?: Sent<K> };

type OwnMember = 'id' | 'cached_discovery' | 'discovery_cached_at' | 'created_at' | 'updated_at';
type Sent<K extends keyof StoredProvider> =
  | (K extends 'provider_type' ? string : NonNullable<StoredProvider[K]>)
  | undefined;

const identifierForm = /^custom:[a-z0-9:-]{0,42}[a-z0-9]$/;

/** @throws AppError `validation_failed` */
function checkIdentifier(identifier: string): string {
  if (!identifier.startsWith('custom:'))
    throw errors.validation_failed({
      message: "identifier must start with 'custom:' prefix, e.g. 'custom:shop'",
    });
  if (!identifierForm.test(identifier))
    throw errors.validation_failed({
      message:
        'identifier must have at most 50 lower-case letters, digits, "-" and ":", and not end with a separator',
    });
  return identifier;
}

/** @throws AppError `custom_provider_not_found` */
export async function getProvider({ store }: ProvidersContext, identifier: string) {
  const provider = await store.customProviders.find(checkIdentifier(identifier));
  if (provider === undefined) throw errors.custom_provider_not_found();
  return provider;
}

/**
 * Adds a provider. The metadata of an OpenID Connect provider must be available.
 *
 * @throws AppError `validation_failed`, `over_custom_provider_quota`, `conflict`
 */
export async function createProvider(
  context: ProvidersContext,
  input: ProviderInput,
  request: AdminRequest,
): Promise<StoredProvider> {
  const { store, settings, random } = context;
  const identifier = checkIdentifier(input.identifier ?? '');
  const at = new Date(request.metadata.nowMs);
  const type = readType(input.provider_type);
  const scopes = type === 'oidc' ? defaultOidcScopes : [];
  const id = random.uuid();
  const own = { id, identifier, provider_type: type, created_at: at, ...noMetadata };
  const provider = await check(context, merge({ ...defaults, ...own, scopes }, input, at), {
    discovers: true,
  });
  const audit = providerAudit('custom_provider_created', provider, request);
  const result = context.providers.isConfigured(identifier)
    ? 'taken'
    : await store.customProviders.insert(provider, { maxProviders: settings.customOauthMaxProviders, audit });
  if (result === 'full') throw errors.over_custom_provider_quota();
  if (result === 'taken')
    throw errors.conflict({
      httpStatus: 400,
      message: 'A custom OAuth provider with this identifier already exists',
    });
  return provider;
}

/** @throws AppError `validation_failed`, `custom_provider_not_found`, `conflict` */
export async function updateProvider(
  context: ProvidersContext,
  identifier: string,
  { input, request }: { readonly input: ProviderInput; readonly request: AdminRequest },
): Promise<StoredProvider> {
  const before = await getProvider(context, identifier);
  const merged = merge(before, input, new Date(request.metadata.nowMs));
  const isMoved = merged.issuer !== before.issuer || merged.discovery_url !== before.discovery_url;
  const provider = await check(context, merged, { discovers: isMoved });
  const [old, changed]: Readonly<Record<string, unknown>>[] = [{ ...before }, { ...provider }];
  const traits = describeChanges(
    Object.keys(input).map((name) => ({ name, before: old?.[name], after: changed?.[name] })),
  );
  const audit = providerAudit('custom_provider_updated', provider, request, traits);
  if (!(await context.store.customProviders.update({ ...provider, version: before.version }, audit)))
    throw errors.conflict();
  return provider;
}

/** @throws AppError `validation_failed`, `custom_provider_not_found` */
export async function deleteProvider(
  { store }: ProvidersContext,
  identifier: string,
  request: AdminRequest,
): Promise<void> {
  const audit = providerAudit(
    'custom_provider_deleted',
    { identifier: checkIdentifier(identifier) },
    request,
  );
  if (!(await store.customProviders.delete(identifier, audit))) throw errors.custom_provider_not_found();
}

function providerAudit(
  action: AuditAction,
  { identifier }: Pick<StoredProvider, 'identifier'>,
  { actor, metadata }: AdminRequest,
  traits?: JsonObject,
) {
  return auditEntry(actor, action, { metadata, traits: { provider: identifier, ...traits } });
}

/** The secret is never returned. */
export function toProviderJson(provider: StoredProvider): Readonly<Record<string, unknown>> {
  const {
    client_secret: _secret,
    cached_discovery: discovery,
    discovery_cached_at: _cachedAt,
    ...shown
  } = provider;
  const members = Object.entries({ ...shown, discovery_document: discovery, version: undefined });
  return Object.fromEntries(members.filter(([, value]) => value !== null && value !== undefined));
}

const defaultOidcScopes = ['openid', 'email', 'profile'];

const noMetadata = { cached_discovery: null, discovery_cached_at: null };

/** The members that administrators can change. */
const defaults = {
  name: '',
  client_id: '',
  client_secret: '',
  acceptable_client_ids: [],
  scopes: [],
  pkce_enabled: true,
  attribute_mapping: {},
  custom_claims_allowlist: [],
  authorization_params: {},
  enabled: true,
  email_optional: false,
  issuer: null,
  discovery_url: null,
  skip_nonce_check: false,
  authorization_url: null,
  token_url: null,
  userinfo_url: null,
  jwks_uri: null,
} as const;

function readType(type = ''): StoredProvider['provider_type'] {
  if (type === 'oauth2' || type === 'oidc') return type;
  throw errors.validation_failed({ message: "provider_type must be either 'oauth2' or 'oidc'" });
}

/** Unknown members, those of the other type, and empty texts are ignored. */
function merge<T extends Omit<StoredProvider, 'updated_at'>>(before: T, input: ProviderInput, at: Date) {
  const otherType: readonly string[] = otherMembers[before.provider_type];
  const changes = Object.fromEntries(
    Object.entries(input).filter(
      ([name, value]) =>
        Object.hasOwn(defaults, name) && !otherType.includes(name) && value !== undefined && value !== '',
    ),
  );
  const merged: T & { readonly updated_at: Date } = { ...before, ...changes, updated_at: at };
  const needsOpenId = merged.provider_type === 'oidc' && !merged.scopes.includes('openid');
  return needsOpenId ? { ...merged, scopes: ['openid', ...merged.scopes] } : merged;
}

const otherMembers = {
  oidc: ['authorization_url', 'token_url', 'userinfo_url', 'jwks_uri'],
  oauth2: ['issuer', 'discovery_url', 'skip_nonce_check'],
} as const;

const requiredMembers = {
  oidc: ['name', 'client_id', 'client_secret', 'issuer'],
  oauth2: ['name', 'client_id', 'client_secret', 'authorization_url', 'token_url', 'userinfo_url'],
} as const;

/** Sizes of the table, and of what a URL may carry. */
const maxChars = { name: 100, client_id: 512, client_secret: 2048 } as const;
const maxUrlChars = 2048;
const maxItems = 50;
const maxItemChars = 512;

/** Parameters that the server sets itself. */
const reservedParameters: readonly string[] = [
  ...['client_id', 'client_secret', 'redirect_uri', 'response_type', 'state', 'nonce'],
  ...['code_challenge', 'code_challenge_method', 'code_verifier'],
];

/** Members of a user that a provider must not set. */
const protectedMembers: readonly string[] = [
  ...['id', 'aud', 'role', 'app_metadata', 'created_at', 'updated_at', 'confirmed_at', 'email_confirmed_at'],
  ...['phone_confirmed_at', 'email_verified', 'phone_verified', 'banned_until', 'is_super_admin'],
];

/** @throws AppError `validation_failed` */
async function check(
  context: ProvidersContext,
  provider: StoredProvider,
  { discovers }: { readonly discovers: boolean },
): Promise<StoredProvider> {
  const problem =
    findMemberProblem(provider) ??
    findMappingProblem(provider) ??
    (await findProviderUrlProblem(context, provider));
  if (problem !== undefined) throw errors.validation_failed({ message: problem });
  if (provider.issuer === null || !discovers) return provider;
  const cached_discovery = await loadMetadata(context, provider, provider.issuer);
  return { ...provider, cached_discovery, discovery_cached_at: provider.updated_at };
}

function findMemberProblem(provider: StoredProvider): string | undefined {
  const missing = requiredMembers[provider.provider_type].find((member) => (provider[member] ?? '') === '');
  if (missing !== undefined) return `${missing} is required for ${provider.provider_type} providers`;
  for (const [member, max] of Object.entries(maxChars))
    if (provider[member as keyof typeof maxChars].length > max)
      return `${member} is longer than ${max} characters`;
  for (const member of ['acceptable_client_ids', 'scopes', 'custom_claims_allowlist'] as const) {
    const items = provider[member];
    if (items.length > maxItems || items.some((item) => item.trim() === '' || item.length > maxItemChars))
      return `${member} entries must be non-empty strings, at most ${maxItems} of ${maxItemChars} characters`;
  }
  return undefined;
}

function findMappingProblem({ attribute_mapping, authorization_params }: StoredProvider): string | undefined {
  const isProtected = Object.keys(attribute_mapping).find((member) => protectedMembers.includes(member));
  if (isProtected !== undefined) return `Cannot map to protected system field: ${isProtected}`;
  for (const [name, value] of Object.entries(authorization_params)) {
    if (reservedParameters.includes(name)) return `Cannot override reserved OAuth parameter: ${name}`;
    if (typeof value !== 'string') return `Authorization parameter ${JSON.stringify(name)} must be a string`;
  }
  return undefined;
}

const urlMembers = [
  'issuer',
  'discovery_url',
  'authorization_url',
  'token_url',
  'userinfo_url',
  'jwks_uri',
] as const;

/** Addresses are checked again with each request: names may be resolved to others then. */
async function findProviderUrlProblem(
  { settings }: ProvidersContext,
  provider: StoredProvider,
): Promise<string | undefined> {
  for (const member of urlMembers) {
    const url = provider[member];
    if (url === null) continue;
    if (url.length > maxUrlChars) return `${member} is longer than ${maxUrlChars} characters`;
    const problem = /^https:\/\/[^\s#]+$/.test(url)
      ? await findUrlProblem(url, settings.customOauthPrivateHosts)
      : 'it is not an https URL without fragment';
    if (problem !== undefined) return `${member} cannot be used: ${problem}`;
  }
  return undefined;
}

const metadataMembers = [
  ...[
    'issuer',
    'authorization_endpoint',
    'token_endpoint',
    'jwks_uri',
    'userinfo_endpoint',
    'scopes_supported',
  ],
  ...['response_types_supported', 'grant_types_supported', 'subject_types_supported'],
] as const;
const requiredMetadata = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;
const discoveryTimeoutMs = 5_000;

async function loadMetadata(
  { settings, logger }: ProvidersContext,
  provider: StoredProvider,
  issuer: string,
): Promise<JsonObject> {
  const fetch = discoveryFetch(provider.discovery_url ?? '', settings.customOauthPrivateHosts);
  const metadata = await discover(issuer, { fetch, timeoutMs: discoveryTimeoutMs }).catch(
    (error: unknown) => {
      logger.info({ err: error, provider: provider.identifier }, 'OIDC discovery failed');
      const reason = error instanceof Error ? error.message : 'the request failed';
      throw errors.validation_failed({ message: `OIDC discovery failed: ${reason}` });
    },
  );
  const missing = requiredMetadata.filter((member) => metadata[member] === undefined);
  if (missing.length > 0)
    throw errors.validation_failed({
      message: `OIDC discovery document is missing required fields: ${missing.join(', ')}`,
    });
  // Parsed boundary: JSON of the provider.
  return Object.fromEntries(
    metadataMembers.flatMap((member) => (metadata[member] === undefined ? [] : [[member, metadata[member]]])),
  ) as JsonObject;
}
