import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/** All addresses of a host name. */
export type Addresses = (host: string) => Promise<readonly string[]>;

const resolveAddresses: Addresses = async (host) =>
  (await lookup(host, { all: true, order: 'ipv4first' })).map(({ address }) => address);

/** More than a Service has; a name with more is not that of replicas. */
const maxReplicas = 256;

/** Where one replica of a service is. */
export interface ReplicaLocation {
  /** It has the address, which tells the replica apart from the others. */
  readonly url: string;
  /** Where requests go. It has the name, which certificates and virtual hosts are for. */
  readonly requestUrl: string;
  /** The address to connect to. Without it, DNS gives one for `requestUrl`. */
  readonly address?: string;
}

/**
 * Finds all replicas: a DNS name stands for all its addresses. A name that cannot be resolved is
 * kept, so that its requests fail with the reason.
 */
export async function resolveReplicas(
  urls: readonly string[],
  addresses: Addresses = resolveAddresses,
): Promise<readonly ReplicaLocation[]> {
  const resolved = await Promise.all(urls.map((url) => resolve(url.replace(/\/+$/, ''), addresses)));
  const byUrl = new Map(resolved.flat().map((replica) => [replica.url, replica]));
  return [...byUrl.values()].slice(0, maxReplicas);
}

async function resolve(url: string, addresses: Addresses): Promise<readonly ReplicaLocation[]> {
  const { hostname } = new URL(url);
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
  // The loopback interface has an IPv4 and an IPv6 address, and no second replica.
  if (isAddress || hostname === 'localhost') return [{ url, requestUrl: url }];
  try {
    return (await addresses(hostname)).map((address) => ({
      url: withHost(url, address),
      requestUrl: url,
      address,
    }));
  } catch {
    return [{ url, requestUrl: url }];
  }
}

function withHost(url: string, address: string): string {
  const replaced = new URL(url);
  replaced.hostname = isIP(address) === 6 ? `[${address}]` : address;
  return replaced.href.replace(/\/+$/, '');
}
