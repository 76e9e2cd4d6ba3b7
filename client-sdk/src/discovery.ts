/**
 * Metadata of authorization servers (RFC 8414, OpenID Connect Discovery), and clients made from
 * them.
 *
 * @module
 */

import { Client } from './client.ts';
import type { ClientOptions } from './client-options.ts';
import { type CachedDocument, DocumentCache } from './document-cache.ts';
import { DiscoveryError, OAuthError } from './errors.ts';
import { loadDocument } from './http/send-request.ts';
import { assertSecure } from './http/url.ts';
import type { KeyCase } from './key-case.ts';
import {
  type AuthorizationServerMetadata,
  checkMetadata,
  type MetadataFormat,
  wellKnownUrls,
} from './metadata.ts';
import { copyPlain } from './objects.ts';
import { assertKnownOptions, type OptionNames } from './option-names.ts';
import type { supportListNames } from './server-support.ts';
import { resolveSettings } from './settings.ts';

export {
  type CachedDocument,
  DocumentCache,
  type DocumentCacheOptions,
  type ExportedDocuments,
} from './document-cache.ts';
export type { AuthorizationServerMetadata, MetadataFormat } from './metadata.ts';

/** Options of discovery; those of a Client have the same meaning. */
export type DiscoveryOptions = Pick<
  ClientOptions,
  | 'cache'
  | 'fetch'
  | 'requestInit'
  | 'timeoutMs'
  | 'maxBodyBytes'
  | 'maxRedirects'
  | 'allowInsecure'
  | 'hooks'
  | 'onHookError'
  | 'retry'
  | 'now'
  | 'debug'
  | 'logger'
> & {
  /** Default `any`. */
  readonly format?: MetadataFormat;
  readonly signal?: AbortSignal;
};

/** Seconds for which metadata are cached. */
const DEFAULT_MAX_AGE_SECONDS = 3600;

/**
 * Loads the metadata of an authorization server and validates them. With `cache`, metadata that
 * were loaded within the last hour are returned without a request.
 *
 * @throws {ConfigurationError} if the issuer is not an https URL: see `allowInsecure`
 * @throws {IssuerMismatchError} if the metadata are another issuer's
 * @throws {DiscoveryError} if there are none or they are invalid; `retryable` if the server may
 * recover
 * @throws {TransportError} if there is no response
 * @see RFC 8414 §3 https://www.rfc-editor.org/rfc/rfc8414#section-3
 */
export async function discover(
  issuer: string,
  options: DiscoveryOptions = {},
): Promise<AuthorizationServerMetadata> {
  return (await loadMetadata(issuer, options, DEFAULT_MAX_AGE_SECONDS)).metadata;
}

/** Metadata with the time since they were loaded. */
interface LoadedMetadata {
  readonly metadata: AuthorizationServerMetadata;
  readonly age: CachedDocument['age'];
}

async function loadMetadata(
  issuer: string,
  options: DiscoveryOptions,
  maxAgeSeconds: number,
): Promise<LoadedMetadata> {
  const { format = 'any', signal, ...rest } = options;
  const urls = wellKnownUrls(issuer, format);
  const settings = resolveSettings(rest);
  const { allowInsecure, now, cache = new DocumentCache({ now }) } = settings;
  for (const url of urls) assertSecure(url, allowInsecure, 'metadata');
  const check = (document: unknown) => checkMetadata(document, { issuer, allowInsecure });
  // Copied, because other clients have the same document.
  const checked = ({ document, age }: CachedDocument) => ({ metadata: check(copyPlain(document)), age });
  for (const url of urls) {
    const cached = cache.get(url);
    if (cached === undefined || cached.age.elapsedSeconds() >= maxAgeSeconds) continue;
    try {
      return checked(cached);
    } catch {
      // Imported data may be of another issuer: they are loaded.
    }
  }
  for (const url of urls) {
    const loaded = await loadIfFound(url, async () => {
      const load = async () => check(await loadDocument(settings, url, signal));
      // A load that may be aborted is not shared.
      return signal === undefined ? await cache.load(url, load) : cache.put(url, await load());
    });
    if (loaded !== undefined) return checked(loaded);
  }
  throw new DiscoveryError(`${issuer} serves no metadata; tried ${urls.join(' and ')}`);
}

/** Options of a cached source of metadata. */
export type MetadataSourceOptions = Omit<DiscoveryOptions, 'signal'> & {
  /** Seconds. Default 3600. */
  readonly maxAgeSeconds?: number;
};

const metadataSourceOptionNames: OptionNames<MetadataSourceOptions> = {
  ...{ cache: 1, fetch: 1, requestInit: 1, timeoutMs: 1, maxBodyBytes: 1, maxRedirects: 1 },
  ...{ allowInsecure: 1, hooks: 1, onHookError: 1, retry: 1, now: 1, debug: 1, logger: 1 },
  ...{ format: 1, maxAgeSeconds: 1 },
};

/** Returns an issuer's metadata, loaded at first use and when they are old. */
export type MetadataSource = () => Promise<AuthorizationServerMetadata>;

/**
 * Makes a cached source of metadata. Concurrent loads are one. Failures are not cached. Old
 * metadata are used if a reload fails.
 *
 * @example
 * ```ts
 * const metadata = createMetadataSource('https://as.example'); const { token_endpoint } = await
 * metadata(); // loads at first use: the server need not be up before
 * ```
 */
export function createMetadataSource(issuer: string, options: MetadataSourceOptions = {}): MetadataSource {
  assertKnownOptions('createMetadataSource', options, metadataSourceOptionNames);
  const { maxAgeSeconds = DEFAULT_MAX_AGE_SECONDS, ...given } = options;
  const { requestInit } = given;
  const discoveryOptions = {
    ...given,
    ...(requestInit !== undefined && { requestInit: copyPlain(requestInit) }),
  };
  let current: LoadedMetadata | undefined;
  let loading: Promise<AuthorizationServerMetadata> | undefined;

  async function loadNow(): Promise<AuthorizationServerMetadata> {
    try {
      current = await loadMetadata(issuer, discoveryOptions, maxAgeSeconds);
      return current.metadata;
    } finally {
      loading = undefined;
    }
  }

  return async () => {
    if (current !== undefined && current.age.elapsedSeconds() < maxAgeSeconds) return current.metadata;
    loading ??= loadNow();
    if (current === undefined) return await loading;
    const { metadata } = current;
    try {
      return await loading;
    } catch {
      return metadata;
    }
  };
}

/** The options of a Client that metadata contain. */
export type DiscoveredOptions = Pick<
  ClientOptions,
  'issuer' | keyof typeof endpointNames | keyof typeof listNames | keyof typeof flagNames
>;

/**
 * Converts metadata into options of a Client: issuer, endpoints, keys, and what the server supports
 * and requires.
 *
 * @param options `mtls`: use the endpoints for clients with a certificate
 * @see RFC 8705 §5 https://www.rfc-editor.org/rfc/rfc8705#section-5
 */
export function clientOptionsFrom(
  metadata: AuthorizationServerMetadata,
  { mtls = false }: { readonly mtls?: boolean } = {},
): DiscoveredOptions {
  const aliases = mtls ? (metadata.mtls_endpoint_aliases ?? {}) : {};
  const found = Object.entries(endpointNames).flatMap(([option, member]) => {
    const url = aliases[member] ?? metadata[member];
    return typeof url === 'string' ? [[option, url]] : [];
  });
  const lists = Object.entries(listNames).filter(([, member]) => Array.isArray(metadata[member]));
  const flags = Object.entries(flagNames).filter(([, member]) => metadata[member] === true);
  const supported = [...lists, ...flags].map(([option, member]) => [option, metadata[member]]);
  return { issuer: metadata.issuer, ...Object.fromEntries([...found, ...supported]) };
}

/** Client options and their members of the metadata. */
const endpointNames = {
  authorizationEndpoint: 'authorization_endpoint',
  tokenEndpoint: 'token_endpoint',
  revocationEndpoint: 'revocation_endpoint',
  introspectionEndpoint: 'introspection_endpoint',
  deviceAuthorizationEndpoint: 'device_authorization_endpoint',
  pushedAuthorizationRequestEndpoint: 'pushed_authorization_request_endpoint',
  userinfoEndpoint: 'userinfo_endpoint',
  jwksUri: 'jwks_uri',
} as const satisfies Partial<Record<keyof ClientOptions, keyof AuthorizationServerMetadata>>;

const listNames = {
  idTokenSigningAlgValuesSupported: 'id_token_signing_alg_values_supported',
  tokenEndpointAuthMethodsSupported: 'token_endpoint_auth_methods_supported',
  codeChallengeMethodsSupported: 'code_challenge_methods_supported',
  dpopSigningAlgValuesSupported: 'dpop_signing_alg_values_supported',
} as const satisfies Record<(typeof supportListNames)[number], keyof AuthorizationServerMetadata>;

const flagNames = {
  authorizationResponseIssParameterSupported: 'authorization_response_iss_parameter_supported',
  requirePushedAuthorizationRequests: 'require_pushed_authorization_requests',
} as const satisfies Partial<Record<keyof ClientOptions, keyof AuthorizationServerMetadata>>;

const discoveryNames = [
  'cache',
  'fetch',
  'requestInit',
  'timeoutMs',
  'maxBodyBytes',
  'maxRedirects',
  'allowInsecure',
  'hooks',
  'onHookError',
  'retry',
  'now',
  'debug',
  'logger',
  'format',
  'signal',
] as const satisfies readonly (keyof DiscoveryOptions)[];

/**
 * Discovers an issuer and makes a Client; the given options take precedence over the metadata.
 *
 * @example
 * ```ts
 * const client = await discoverClient('https://as.example', { clientId: 'app', clientSecret });
 * ```
 * @throws as `discover`, and {ConfigurationError} if the server does not support the options
 */
export async function discoverClient<Throws extends boolean = true, Keys extends KeyCase = 'snake'>(
  issuer: string,
  options: ClientOptions<Throws, Keys> & Pick<DiscoveryOptions, 'format' | 'signal'> = {},
): Promise<Client<Throws, Keys>> {
  const { format: _, signal: __, ...clientOptions } = options;
  const metadata = await discover(issuer, pickDefined(options, discoveryNames));
  const mtls = options.clientAuth === 'tls_client_auth';
  return new Client<Throws, Keys>({ ...clientOptionsFrom(metadata, { mtls }), ...clientOptions });
}

/** Undefined if the server has no document at the URL. */
async function loadIfFound(
  url: string,
  load: () => Promise<CachedDocument>,
): Promise<CachedDocument | undefined> {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    if (error.status >= 300 && error.status < 400) throw new DiscoveryError(error.message, { cause: error });
    // For an unknown path servers respond with 404, 400, 401 or 403.
    if (error.status < 500 && error.status !== 429) return undefined;
    throw new DiscoveryError(`${url} responded with status ${error.status}`, {
      cause: error,
      retryable: true,
    });
  }
}

function pickDefined<T extends object, Name extends keyof T>(
  options: T,
  names: readonly Name[],
): { [K in Name]?: Exclude<T[K], undefined> } {
  const members = names.map((name) => [name, options[name]]);
  // The members that are undefined are left out, as the type says.
  return Object.fromEntries(members.filter(([, value]) => value !== undefined)) as never;
}
