import { createHash } from 'node:crypto';

/**
 * The key of events that are limited by the network of the client: a digest, so that no addresses
 * are stored. Clients without a known network share one.
 */
export function networkKey(clientNetwork: string = ''): string {
  return createHash('sha256').update(clientNetwork).digest('base64url');
}
