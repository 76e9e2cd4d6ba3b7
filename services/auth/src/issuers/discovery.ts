import { readTextFile } from '@tollgate/kit/text-files';
import { fetchText } from '../outbound/fetch.ts';
import { type KeySource, tenantPlaceholder } from './definition.ts';
import { type ParsedKeySet, parseKeySet } from './key-set.ts';
import { acceptJson, type ClusterAccess, fetchFromCluster } from './kubernetes.ts';

export interface LoadOptions {
  /** Hosts that may have a private address, and be reached without TLS; in lower case. */
  readonly privateHosts: readonly string[];
  /** Undefined outside of Kubernetes. */
  readonly cluster: ClusterAccess | undefined;
}

/** Keys that an issuer publishes. */
export interface LoadedKeys extends ParsedKeySet {
  /** Exact value of `iss`, or the pattern of all tenants. */
  readonly issuer: string;
  readonly jwksUri: string;
  /** The key set as received: equal texts are equal keys. */
  readonly text: string;
}

/** Time limit of each document. Requests wait less. */
const timeoutMs = 5_000;
/** Entra's metadata has 2 kB; a certificate chain in each key adds some. */
const maxBytes = { metadata: 128 * 1024, keys: 512 * 1024, ca: 1024 * 1024 };

/**
 * Loads the keys of an issuer, from its metadata unless `jwksUri` is set.
 *
 * @throws Error that says what was wrong.
 */
export async function loadKeys(source: KeySource, options: LoadOptions): Promise<LoadedKeys> {
  if (source.isKubernetes) return loadFromCluster(source, options);
  const { issuer = '', caFile } = source;
  const ca = caFile === undefined ? undefined : await readTextFile(caFile, maxBytes.ca);
  const get = (url: string, limit: number): Promise<string> => {
    const { privateHosts } = options;
    const headers = { accept: acceptJson };
    const limits = { timeoutMs, maxBytes: limit, requiresHttps: true };
    return fetchText(new URL(url), { privateHosts, headers, ca, ...limits });
  };
  const jwksUri = source.jwksUri ?? (await discoverKeys(source, issuer, get));
  const text = await get(jwksUri, maxBytes.keys);
  return { issuer, jwksUri, text, ...parseKeySet(text) };
}

type Get = (url: string, maxBytes: number) => Promise<string>;

async function discoverKeys({ discovery }: KeySource, issuer: string, get: Get): Promise<string> {
  const [url = '', fallback] = discovery === undefined ? metadataUrls(issuer) : [discovery];
  const text = await get(url, maxBytes.metadata).catch((error: unknown) => {
    if (fallback === undefined) throw error;
    // The error of the first URL says more: few issuers have the second.
    return get(fallback, maxBytes.metadata).catch(() => Promise.reject(error));
  });
  const metadata = parseMetadata(text);
  // Another issuer's keys would verify its tokens for this one. @see RFC 8414 §3.3
  if (metadata.issuer !== issuer)
    throw new Error(`the metadata are those of the issuer ${metadata.issuer}, expected ${issuer}`);
  return metadata.jwksUri;
}

/**
 * OpenID Connect Discovery §4 appends the well-known path to that of the issuer; RFC 8414 §3.1
 * inserts it before.
 */
function metadataUrls(issuer: string): readonly [openId: string, oauth: string] {
  const url = new URL(issuer.replace(tenantPlaceholder, 'common'));
  const path = url.pathname.replace(/\/$/, '');
  const openId = `${url.origin}${path}/.well-known/openid-configuration`;
  return [openId, `${url.origin}/.well-known/oauth-authorization-server${path}`];
}

interface Metadata {
  readonly issuer: string;
  readonly jwksUri: string;
}

function parseMetadata(text: string): Metadata {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error('the metadata are not JSON');
  }
  // Parsed boundary: members are unknown.
  const { issuer, jwks_uri: jwksUri } = (parsed ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof issuer !== 'string') throw new Error('the metadata have no issuer');
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new Error('the metadata have no jwks_uri');
  return { issuer, jwksUri };
}

/** The keys are those of the API server, whatever `jwks_uri` says: it may be a public copy. */
async function loadFromCluster(source: KeySource, { cluster }: LoadOptions): Promise<LoadedKeys> {
  if (cluster === undefined) throw new Error('kubernetes: true requires that the service runs in Kubernetes');
  const get = (path: string, limit: number) =>
    fetchFromCluster(cluster, path, { timeoutMs, maxBytes: limit });
  const { issuer } = parseMetadata(await get('/.well-known/openid-configuration', maxBytes.metadata));
  if (source.issuer !== undefined && source.issuer !== issuer)
    throw new Error(`the issuer of the cluster is ${issuer}, expected ${source.issuer}`);
  const path = '/openid/v1/jwks';
  const text = await get(path, maxBytes.keys);
  return { issuer, jwksUri: `${cluster.url}${path}`, text, ...parseKeySet(text) };
}
