import { BlockList, isIP, isIPv4 } from 'node:net';
import { clientNetwork } from '../http/request-metadata.ts';
import { classifyAddress } from '../outbound/fetch.ts';
import type { AuthzRequest } from './request.ts';

/** Networks that have a name in `SVC_SECURITY_TRUSTED_PROXIES`, as in Fastify's `trustProxy`. */
const namedNetworks: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

/** The value of requests whose client is not known: they share one counter. */
export const unknownAddress = 'unknown';

/** Enough for two dozen proxies. Clients control the start, proxies append to the end. */
const maxForwardedForChars = 1024;

/** Finds the addresses of clients, as the API does: behind proxies that are trusted. */
export class ClientAddresses {
  readonly #trusted = new BlockList();

  constructor(trustedProxies: readonly string[]) {
    for (const network of trustedProxies.flatMap((entry) => namedNetworks[entry] ?? [entry])) {
      const [address = '', bits] = network.split('/');
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      if (bits === undefined) this.#trusted.addAddress(address, family);
      else this.#trusted.addSubnet(address, Number(bits), family);
    }
  }

  /**
   * The address of the client, for rate limits: of IPv6 the /64, the usual size of a subscriber.
   * The gateway is trusted; so is what it received from a trusted proxy.
   */
  find(request: Pick<AuthzRequest, 'sourceAddress' | 'forwardedFor'>): string {
    const address = this.findAddress(request);
    return address === unknownAddress || isIPv4(address) ? address : clientNetwork(address);
  }

  /** The whole address of the client. */
  findAddress({ sourceAddress, forwardedFor }: Pick<AuthzRequest, 'sourceAddress' | 'forwardedFor'>): string {
    let address = sourceAddress;
    const forwarded = forwardedFor.join(',').slice(-maxForwardedForChars).split(',');
    while (address === '' || this.#isTrusted(address)) {
      const next = forwarded.pop()?.trim() ?? '';
      if (isIP(next) === 0) break;
      address = next;
    }
    if (isIP(address) === 0) return unknownAddress;
    return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
  }

  /** Whether a proxy in a private network that is not trusted forwarded the request of another. */
  isHidden({ sourceAddress, forwardedFor }: Pick<AuthzRequest, 'sourceAddress' | 'forwardedFor'>): boolean {
    if (forwardedFor.length === 0 || isIP(sourceAddress) === 0 || this.#isTrusted(sourceAddress))
      return false;
    // Envoy appends the source itself.
    const isForwarded = forwardedFor.some((value) => value.trim() !== sourceAddress);
    return isForwarded && classifyAddress(sourceAddress) === 'private';
  }

  #isTrusted(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
  }
}
