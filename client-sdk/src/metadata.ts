import { ConfigurationError, DiscoveryError, IssuerMismatchError } from './errors.ts';
import { isSecure } from './http/url.ts';
import { isIssuer } from './issuer.ts';
import { isTooDeep } from './objects.ts';
import { quote } from './text.ts';

/**
 * The metadata of an authorization server, under their wire names.
 *
 * @see OpenID Connect Discovery §3
 * https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata
 * @see RFC 8414 §2 https://www.rfc-editor.org/rfc/rfc8414#section-2
 */
export interface AuthorizationServerMetadata {
  readonly issuer: string;
  readonly authorization_endpoint?: string;
  readonly token_endpoint?: string;
  readonly revocation_endpoint?: string;
  readonly introspection_endpoint?: string;
  readonly device_authorization_endpoint?: string;
  readonly pushed_authorization_request_endpoint?: string;
  readonly userinfo_endpoint?: string;
  readonly end_session_endpoint?: string;
  readonly registration_endpoint?: string;
  readonly jwks_uri?: string;
  readonly scopes_supported?: readonly string[];
  readonly response_types_supported?: readonly string[];
  readonly grant_types_supported?: readonly string[];
  readonly token_endpoint_auth_methods_supported?: readonly string[];
  readonly code_challenge_methods_supported?: readonly string[];
  readonly id_token_signing_alg_values_supported?: readonly string[];
  readonly dpop_signing_alg_values_supported?: readonly string[];
  readonly authorization_response_iss_parameter_supported?: boolean;
  readonly require_pushed_authorization_requests?: boolean;
  /**
   * Endpoints for clients with a certificate.
   * @see RFC 8705 §5 https://www.rfc-editor.org/rfc/rfc8705#section-5
   */
  readonly mtls_endpoint_aliases?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

/**
 * Checks that a document is the metadata of this issuer and that its URLs can be used.
 *
 * @throws {IssuerMismatchError} if it is another issuer's, whose endpoints must not receive our
 * credentials
 * @throws {DiscoveryError} if it is not metadata, or a URL in it is not https
 * @see RFC 8414 §3.3 https://www.rfc-editor.org/rfc/rfc8414#section-3.3
 */
export function checkMetadata(
  document: unknown,
  { issuer, allowInsecure }: { readonly issuer: string; readonly allowInsecure: boolean },
): AuthorizationServerMetadata {
  if (!hasIssuer(document)) throw new DiscoveryError(`the metadata of ${issuer} have no \`issuer\``);
  if (isTooDeep(document)) throw new DiscoveryError(`the metadata of ${issuer} have too many levels`);
  // Entra's metadata for several tenants are at `/common` and have `/{tenantid}` as issuer.
  if (document.issuer !== issuer && !isIssuer(issuer, document.issuer))
    throw mismatch(document.issuer, issuer);
  for (const [name, url] of listUrls(document)) {
    if (!isUsableUrl(url, allowInsecure)) {
      throw new DiscoveryError(
        `the metadata of ${issuer} has an unusable \`${name}\`: expected an https URL`,
      );
    }
  }
  return document;
}

function hasIssuer(document: unknown): document is AuthorizationServerMetadata {
  return (
    typeof document === 'object' &&
    document !== null &&
    'issuer' in document &&
    typeof document.issuer === 'string'
  );
}

/** Endpoints, their mutual TLS aliases, and the key set. Nothing is sent to the other URLs. */
function listUrls(metadata: AuthorizationServerMetadata): [string, unknown][] {
  const aliases: unknown = metadata.mtls_endpoint_aliases;
  const all = [
    ...Object.entries(metadata),
    ...(typeof aliases === 'object' && aliases !== null ? Object.entries(aliases) : []),
  ];
  return all.filter(([name, url]) => url !== null && (name.endsWith('_endpoint') || name === 'jwks_uri'));
}

function isUsableUrl(url: unknown, allowInsecure: boolean): boolean {
  const parsed = typeof url === 'string' ? URL.parse(url) : null;
  return parsed !== null && /^https?:$/.test(parsed.protocol) && isSecure(parsed.href, allowInsecure);
}

function mismatch(actual: string, expected: string): IssuerMismatchError {
  const isSlash = actual === `${expected}/` || `${actual}/` === expected;
  const hint = isSlash ? ': they differ in the trailing slash' : '';
  return new IssuerMismatchError(`the metadata are of ${quote(actual)}; expected ${quote(expected)}${hint}`);
}

/** The specification whose document is loaded; `any` tries OpenID Connect's first. */
export type MetadataFormat = 'any' | 'openid-configuration' | 'oauth-authorization-server';

/**
 * The URLs of an issuer's metadata, in the order to try. OpenID Connect appends the well-known path
 * to the issuer; RFC 8414 inserts it between host and path.
 *
 * @throws {ConfigurationError} if the issuer is not an absolute URL without query and fragment
 * @see OpenID Connect Discovery §4.1
 * https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfigurationRequest
 * @see RFC 8414 §3.1 https://www.rfc-editor.org/rfc/rfc8414#section-3.1
 */
export function wellKnownUrls(issuer: string, format: MetadataFormat): readonly string[] {
  const url = URL.parse(issuer);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new ConfigurationError(
      `an issuer is an https URL without query and fragment; got ${JSON.stringify(issuer)}`,
    );
  }
  if (url.pathname.includes('/.well-known/')) {
    throw new ConfigurationError(
      `give the issuer, not the URL of its metadata; got ${JSON.stringify(issuer)}`,
    );
  }
  const path = url.pathname.endsWith('/') ? url.pathname.slice(0, -1) : url.pathname;
  const openId = `${url.origin}${path}/.well-known/openid-configuration`;
  const oauth = `${url.origin}/.well-known/oauth-authorization-server${path}`;
  if (format === 'any') return [openId, oauth];
  return [format === 'openid-configuration' ? openId : oauth];
}
