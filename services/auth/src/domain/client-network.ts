/**
 * The network of a client address that limits count together: /24 of IPv4, /64 of IPv6, which is what one subscriber is given. An
 * IPv4 address that is mapped into IPv6 is the IPv4 address.
 *
 * @param address a valid IP address
 * @see RFC 6177 §2 https://www.rfc-editor.org/rfc/rfc6177#section-2
 */
export function clientNetwork(address: string): string {
  const ipv4 = /^(?:::ffff:)?(\d+\.\d+\.\d+)\.\d+$/i.exec(address)?.[1];
  if (ipv4 !== undefined) return `${ipv4}.0/24`;
  const [head = '', tail] = address.split('%', 1).join().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  const groups = [...left, ...zeros, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16));
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}
