import type { JsonObject } from '@tollgate/kit/json';
import type { AuditAction } from '../audit/actions.ts';
import { auditEntry } from '../audit/audit-log.ts';
import { describeChanges } from '../audit/changes.ts';
import { errors } from '../errors.ts';
import type { AdminRequest } from '../sessions/admin-request.ts';
import type { ProvidersContext } from './connections.ts';
import { checkProvider, testProvider } from './custom-check.ts';
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
  const provider = await checkProvider(context, merge({ ...defaults, ...own, scopes }, input, at), {
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
  const provider = await checkProvider(context, merged, { discovers: isMoved });
  const [old, changed]: Readonly<Record<string, unknown>>[] = [{ ...before }, { ...provider }];
  const traits = describeChanges(
    Object.keys(input).map((name) => ({ name, before: old?.[name], after: changed?.[name] })),
  );
  const audit = providerAudit('custom_provider_updated', provider, request, traits);
  if (!(await context.store.customProviders.update({ ...provider, version: before.version }, audit)))
    throw errors.conflict();
  return provider;
}

/**
 * Checks a provider as a change does, with its metadata now. Nothing is changed.
 *
 * @throws AppError `custom_provider_not_found`
 */
export async function checkStoredProvider(
  context: ProvidersContext,
  identifier: string,
  request: AdminRequest,
) {
  const provider = await getProvider(context, identifier);
  const result = await testProvider(context, provider);
  await context.store.audit.append(
    providerAudit('custom_provider_checked', provider, request, { ok: result.ok }),
  );
  return result;
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
