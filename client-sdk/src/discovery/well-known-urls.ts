import { ConfigurationError } from '../errors/configuration-error.ts';

/** Which of the two specifications' documents is asked for; `any` tries OpenID Connect's first. */
export type MetadataFormat = 'any' | 'openid-configuration' | 'oauth-authorization-server';

/**
 * Where an issuer's metadata may be, in the order to try. OpenID Connect appends the well-known path to the issuer;
 * RFC 8414 puts it between host and path.
 *
 * @throws {ConfigurationError} when the issuer is not an absolute URL without query and fragment
 * @see OpenID Connect Discovery §4.1 https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfigurationRequest
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
