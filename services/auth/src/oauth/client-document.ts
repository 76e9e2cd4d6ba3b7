import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { JsonObject } from '@tollgate/kit/json';
import { toObject } from '../outbound/post-form.ts';
import { type ClientInput, defaultGrants } from './client-input.ts';
import { openGrants } from './grant.ts';

/** Claims and headers of the gateway have this length at most. */
const maxUrlChars = 255;

/**
 * Whether a `client_id` is the URL of a metadata document. The form has to be the canonical one, so
 * that a client has one URL, and no dot segments.
 *
 * @see https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/ §3
 */
export function isDocumentUrl(text: string): boolean {
  if (!text.startsWith('https://') || text.length > maxUrlChars) return false;
  const url = URL.parse(text);
  return (
    url !== null &&
    url.href === text &&
    url.pathname !== '/' &&
    url.username === '' &&
    url.password === '' &&
    !text.includes('#')
  );
}

/** GoTrue's tables have UUIDs: version 8, of the SHA-256 digest of the URL. @see RFC 9562 §5.8 */
export function documentClientId(url: string): string {
  const bytes = createHash('sha256').update(url).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** A document cannot be used. The message is for the developer of the client. */
export class DocumentProblem extends Error {
  override readonly name = 'DocumentProblem';
}

const documentMethods: readonly string[] = ['none', 'private_key_jwt'];
/** Anyone can read a document: it must not have them. */
const secretMembers = ['client_secret', 'client_secret_expires_at'] as const;

/**
 * The members of a client, all of which are set, so that those which a document no longer has are
 * removed.
 *
 * @throws DocumentProblem
 */
export function readDocument(url: string, text: string): ClientInput {
  const document = parseDocument(text);
  if (document.client_id !== url) throw new DocumentProblem('its client_id is not its URL');
  const secret = secretMembers.find((name) => Object.hasOwn(document, name));
  if (secret !== undefined) throw new DocumentProblem(`it has ${secret}, and anyone can read it`);
  const method = readText(document, 'token_endpoint_auth_method') || 'none';
  if (!documentMethods.includes(method))
    throw new DocumentProblem(`token_endpoint_auth_method must be one of: ${documentMethods.join(', ')}`);
  const usesKeys = method === 'private_key_jwt';
  const grants = readTexts(document, 'grant_types') ?? defaultGrants;
  return {
    token_endpoint_auth_method: method,
    client_name: readText(document, 'client_name'),
    client_uri: readText(document, 'client_uri'),
    logo_uri: readText(document, 'logo_uri'),
    redirect_uris: readTexts(document, 'redirect_uris') ?? [],
    // Others are ignored, as RFC 7591 §2 allows.
    grant_types: grants.filter((grant) => openGrants.includes(grant)),
    metadata: {
      post_logout_redirect_uris: [...(readTexts(document, 'post_logout_redirect_uris') ?? [])],
      backchannel_logout_uri: readText(document, 'backchannel_logout_uri'),
      require_pushed_authorization_requests: document.require_pushed_authorization_requests === true,
      dpop_bound_access_tokens: document.dpop_bound_access_tokens === true,
      access_token_typ: readText(document, 'access_token_typ'),
    },
    jwks: usesKeys ? readObject(document, 'jwks') : {},
    jwks_uri: usesKeys ? readText(document, 'jwks_uri') : '',
  };
}

type Members = Readonly<Record<string, unknown>>;

function parseDocument(text: string): Members {
  try {
    return toObject(JSON.parse(text));
  } catch {
    throw new DocumentProblem('it is not JSON');
  }
}

/** Empty if the member is absent. */
function readText(document: Members, name: string): string {
  const value = document[name] ?? '';
  if (typeof value !== 'string') throw new DocumentProblem(`${name} must be a text`);
  return value;
}

function readTexts(document: Members, name: string): readonly string[] | undefined {
  const value = document[name] ?? undefined;
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
    throw new DocumentProblem(`${name} must be a list of texts`);
  return value;
}

function readObject(document: Members, name: string): JsonObject {
  const value = document[name] ?? {};
  if (typeof value !== 'object' || Array.isArray(value))
    throw new DocumentProblem(`${name} must be an object`);
  return value as JsonObject; // parsed from JSON
}

const minuteMs = 60_000;
/** Documents are not fetched for each request, and changes of them apply within a day. */
const lifetimeMs = { min: minuteMs, default: 60 * minuteMs, max: 24 * 60 * minuteMs } as const;

/** How long a document is used before it is fetched again. @see RFC 9111 §4.2, §5.2.2 */
export function documentLifetimeMs(headers: IncomingHttpHeaders): number {
  const directives = (headers['cache-control'] ?? '')
    .toLowerCase()
    .split(',')
    .map((directive) => directive.trim());
  if (directives.some((name) => name === 'no-store' || name === 'no-cache')) return lifetimeMs.min;
  const seconds = directives.map((name) => /^max-age="?(\d{1,10})"?$/.exec(name)?.[1]).find(Boolean);
  if (seconds === undefined) return lifetimeMs.default;
  const ageMs = Number(/^\d{1,10}$/.exec(headers.age ?? '0')?.[0] ?? 0) * 1000;
  return Math.min(Math.max(Number(seconds) * 1000 - ageMs, lifetimeMs.min), lifetimeMs.max);
}

const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Whether a URI of visible ASCII is one of the document's. It lists no ports of apps on a device,
 * which get one from the system when they start.
 *
 * @see RFC 8252 §7.3 https://www.rfc-editor.org/rfc/rfc8252#section-7.3
 */
export function isDocumentRedirect(uri: string, published: readonly string[]): boolean {
  return published.includes(uri) || published.some((other) => isLoopbackMatch(uri, other));
}

function isLoopbackMatch(uri: string, published: string): boolean {
  const [url, other] = [URL.parse(uri), URL.parse(published)];
  if (url === null || other === null || other.protocol !== 'http:') return false;
  if (!loopbackHosts.includes(other.hostname)) return false;
  other.port = url.port;
  return url.href === other.href && uri.startsWith('http://') && !/[,#]/.test(uri);
}
