import { ConfigurationError } from '../errors/configuration-error.ts';

/**
 * Refuses to let credentials travel over plain http, except to this machine itself.
 * @throws {ConfigurationError} unless `allowInsecure` is set.
 * @see RFC 6749 §1.6 https://www.rfc-editor.org/rfc/rfc6749#section-1.6
 */
export function assertSecure(url: string, allowInsecure: boolean): void {
  if (allowInsecure || url.startsWith('https:') || loopback.test(url)) return;
  throw new ConfigurationError(
    `credentials would travel unencrypted to ${new URL(url).origin}: use https, or set \`allowInsecure: true\` where the network itself is trusted`,
  );
}

/** URLs are normalised by now, user information has no place in them. */
const loopback = /^http:\/\/(?:(?:[a-z0-9-]+\.)*localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?\//;
