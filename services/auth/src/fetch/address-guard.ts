import { BlockList, isIPv4 } from 'node:net';

// Networks that are not the Internet. @see https://www.iana.org/assignments/iana-ipv4-special-registry
const privateNetworks = blockList([
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '::1/128',
  'fc00::/7',
]);

// Where nobody keeps a document: this host, neighbours on the link (and the credentials that clouds serve there), documentation,
// multicast, and addresses that stand for another one.
const neverNetworks = blockList([
  '0.0.0.0/8',
  '169.254.0.0/16',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '::/128',
  '64:ff9b::/32',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  'fd00:ec2::/32',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]);

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** What kind of network an address belongs to; an IPv4 address in the clothes of IPv6 is what it stands for. */
export function networkOf(address: string): 'public' | 'private' | 'never' {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  if (neverNetworks.check(address, family)) return 'never';
  return privateNetworks.check(address, family) ? 'private' : 'public';
}
