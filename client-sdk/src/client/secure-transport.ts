import { ConfigurationError } from '../errors/configuration-error.ts';

/**
 * Refuses plain http, except to this machine itself, for what must be neither read nor changed on its way: credentials, and the
 * metadata and keys that credentials are trusted by.
 * @throws {ConfigurationError} unless `allowInsecure` is set.
 * @see RFC 6749 §1.6 https://www.rfc-editor.org/rfc/rfc6749#section-1.6
 * @see RFC 8414 §6.1 https://www.rfc-editor.org/rfc/rfc8414#section-6.1
 */
export function assertSecure(url: string, allowInsecure: boolean, what = 'credentials'): void {
  if (isSecure(url, allowInsecure)) return;
  throw new ConfigurationError(
    `${what} would travel unencrypted, to or from ${new URL(url).origin}: use https, or set \`allowInsecure: true\` where the network itself is trusted`,
  );
}

/** Whether a normalised http(s) URL is https, or of this machine itself. */
export function isSecure(url: string, allowInsecure: boolean): boolean {
  return allowInsecure || url.startsWith('https:') || loopback.test(url);
}

/** URLs are normalised by now, without user information. Not subdomains of localhost: systems may ask DNS for them. */
const loopback = /^http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?\//;
