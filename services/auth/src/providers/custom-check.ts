import { isAppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import { discover } from '@tollgate/oauth2-client/discovery';
import { errors } from '../errors.ts';
import { discoveryFetch } from '../identity-providers/custom.ts';
import { findUrlProblem } from '../outbound/fetch.ts';
import type { ProvidersContext } from './connections.ts';
import type { StoredProvider } from './custom-store.ts';

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

/**
 * Checks a provider, and adds its metadata.
 *
 * @throws AppError `validation_failed`
 */
export async function checkProvider(
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

/** The result of a check of a stored provider. */
type ProviderCheck =
  | { readonly ok: true; readonly discovery_document?: JsonObject }
  | { readonly ok: false; readonly problem: string };

/** Checks a stored provider as it would be at a change, with its metadata now. */
export async function testProvider(
  context: ProvidersContext,
  provider: StoredProvider,
): Promise<ProviderCheck> {
  try {
    const { issuer, cached_discovery } = await checkProvider(context, provider, { discovers: true });
    return { ok: true, ...(issuer !== null && cached_discovery && { discovery_document: cached_discovery }) };
  } catch (error) {
    if (!isAppError(error, 'validation_failed')) throw error;
    return { ok: false, problem: error.message };
  }
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
