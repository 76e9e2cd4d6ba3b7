import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/** All addresses of a host name. */
export type Addresses = (host: string) => Promise<readonly string[]>;

const resolveAddresses: Addresses = async (host) =>
  (await lookup(host, { all: true, order: 'ipv4first' })).map(({ address }) => address);

/** More than a Service has; a name with more is not that of replicas. */
const maxReplicas = 256;

/**
 * URLs of all replicas: a DNS name stands for all its addresses. A name that cannot be resolved is
 * kept, so that its requests fail with the reason. With https the name is kept, too: certificates
 * are for names.
 */
export async function resolveReplicas(
  urls: readonly string[],
  addresses: Addresses = resolveAddresses,
): Promise<readonly string[]> {
  const resolved = await Promise.all(urls.map((url) => resolve(url.replace(/\/+$/, ''), addresses)));
  return [...new Set(resolved.flat())].slice(0, maxReplicas);
}

async function resolve(url: string, addresses: Addresses): Promise<readonly string[]> {
  const { protocol, hostname } = new URL(url);
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
  // The loopback interface has an IPv4 and an IPv6 address, and no second replica.
  if (protocol === 'https:' || isAddress || hostname === 'localhost') return [url];
  try {
    return (await addresses(hostname)).map((address) => withHost(url, address));
  } catch {
    return [url];
  }
}

function withHost(url: string, address: string): string {
  const replaced = new URL(url);
  replaced.hostname = isIP(address) === 6 ? `[${address}]` : address;
  return replaced.href.replace(/\/+$/, '');
}
