import { ConfigurationError } from '../errors/configuration-error.ts';

/**
 * Refuses to let credentials travel over plain http, except to this machine itself.
 * @throws {ConfigurationError} unless `allowInsecure` is set.
 * @see RFC 6749 §1.6 https://www.rfc-editor.org/rfc/rfc6749#section-1.6
 */
export function assertSecure(url: string, allowInsecure: boolean): void {
  if (allowInsecure || url.startsWith('https:')) return;
  const { protocol, hostname, origin } = new URL(url);
  if (protocol === 'https:' || isLoopback(hostname)) return;
  throw new ConfigurationError(
    `credentials would travel unencrypted to ${origin}: use https, or set \`allowInsecure: true\` where the network itself is trusted`,
  );
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname)
  );
}
