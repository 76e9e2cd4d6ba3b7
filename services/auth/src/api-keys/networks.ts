import { BlockList, isIP } from 'node:net';

/** Networks that a key may be used from. */
export interface Networks {
  has(address: string): boolean;
}

const cidrForm = /^([\da-f:.]+)\/(\d{1,3})$/i;

/** Parses a network such as `10.0.0.0/8`, or an address. Undefined if it is not one. */
function parseNetwork(text: string): { address: string; bits: number; family: 'ipv4' | 'ipv6' } | undefined {
  const [, network = text, length] = cidrForm.exec(text) ?? [];
  const version = isIP(network);
  if (version === 0 || network.includes('%')) return undefined;
  const maxBits = version === 4 ? 32 : 128;
  const bits = length === undefined ? maxBits : Number(length);
  return bits > maxBits ? undefined : { address: network, bits, family: version === 4 ? 'ipv4' : 'ipv6' };
}

export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== undefined;
}

/**
 * Undefined for an empty list: any address is allowed. A network that cannot be parsed, which only
 * another program can have stored, allows no address.
 */
export function compileNetworks(texts: readonly string[]): Networks | undefined {
  if (texts.length === 0) return undefined;
  const list = new BlockList();
  for (const text of texts) {
    const parsed = parseNetwork(text);
    if (parsed !== undefined) list.addSubnet(parsed.address, parsed.bits, parsed.family);
  }
  return {
    has(address) {
      const version = isIP(address);
      return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6');
    },
  };
}
