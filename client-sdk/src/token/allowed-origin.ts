import type { ClientSettings } from '../client/client-settings.ts';
import { assertSecure } from '../client/secure-transport.ts';
import { ConfigurationError } from '../errors/configuration-error.ts';

/**
 * Lets an access token go only where it is meant to: the site, the server that made it, and the origins listed; never unencrypted.
 * @throws {ConfigurationError} for any other origin.
 */
export function assertAllowed(url: string, { allowedOrigins, allowInsecure }: ClientSettings): void {
  assertSecure(url, allowInsecure);
  if (allowedOrigins === '*' || allowedOrigins.some((origin) => isUnder(url, origin))) return;
  const { origin } = new URL(url);
  throw new ConfigurationError(
    `access tokens are not sent to ${origin}: add it to the client's \`allowedOrigins\` if they should be`,
  );
}

/** URLs are normalised by now: what follows an origin begins with a slash. */
function isUnder(url: string, origin: string): boolean {
  return url.startsWith(origin) && url[origin.length] === '/';
}
