import { lookup as lookUpName } from 'node:dns';
import { type ClientRequest, get as httpGet, type IncomingMessage } from 'node:http';
import { get as httpsGet } from 'node:https';
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net';

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

/** What may be fetched, and how much of it. */
export interface FetchTextOptions {
  /** Hosts that may be at an address that is not of the Internet; in lower case. */
  readonly privateHosts: readonly string[];
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Sent along, to redirects as well: no secrets. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Says why a text was not fetched. */
class FetchRefused extends Error {
  override readonly name = 'FetchRefused';
}

/** A redirect may lead to another one, and so on. */
const maxRedirects = 3;

/**
 * Fetches a text by HTTP from somewhere that may be hostile. Each host, also of redirects, must be at a public address, or be one of
 * `privateHosts`; the address that was looked at is the one that is connected to. Time and size have a bound over all.
 *
 * @throws FetchRefused, or what the network threw.
 */
export async function fetchText(url: URL, options: FetchTextOptions): Promise<string> {
  const signal = AbortSignal.timeout(options.timeoutMs);
  let at = url;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const response = await get(at, options, signal);
    const location = redirectOf(response);
    if (location === undefined) return readText(response, options.maxBytes);
    response.destroy();
    at = new URL(location, at);
  }
  throw new FetchRefused(`more than ${maxRedirects} redirects`);
}

function get(
  url: URL,
  { privateHosts, headers }: FetchTextOptions,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const check = (address: string): Error | undefined => problemOf(host, address, privateHosts);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new FetchRefused(`${url.protocol} is neither http nor https`);
  if (url.username !== '' || url.password !== '') throw new FetchRefused('the URL has a user or password');
  // Addresses are not looked up: nobody else would look at them.
  const problem = isIP(host) === 0 ? undefined : check(host);
  if (problem) throw problem;
  const options = {
    signal,
    lookup: guardedLookup(check),
    agent: false,
    headers: { accept: 'text/html, */*', ...headers },
  };
  return new Promise((resolve, reject) => {
    const request: ClientRequest =
      url.protocol === 'https:' ? httpsGet(url, options, resolve) : httpGet(url, options, resolve);
    request.once('error', reject);
  });
}

function problemOf(host: string, address: string, privateHosts: readonly string[]): Error | undefined {
  const network = networkOf(address);
  if (network === 'public') return undefined;
  if (network === 'private' && privateHosts.includes(host.toLowerCase())) return undefined;
  return new FetchRefused(`${host} is at ${address}, which is not a public address`);
}

/** Refuses a name when any of its addresses is refused: which of them is connected to is not ours to choose. */
function guardedLookup(check: (address: string) => Error | undefined): LookupFunction {
  return (hostname, options, callback) => {
    lookUpName(hostname, { ...options, all: true }, (error, addresses) => {
      const problem = error ?? addresses.map(({ address }) => check(address)).find(Boolean);
      const [first] = addresses ?? [];
      if (problem || first === undefined) callback(problem ?? new FetchRefused('no address'), '', 0);
      else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function redirectOf({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? headers.location : undefined;
}

async function readText(response: IncomingMessage, maxBytes: number): Promise<string> {
  if (response.statusCode !== 200) {
    response.destroy();
    throw new FetchRefused(`the answer has status ${response.statusCode}`);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    const buffer = Buffer.from(chunk);
    bytes += buffer.length;
    if (bytes > maxBytes) {
      response.destroy();
      throw new FetchRefused(`the answer has more than ${maxBytes} bytes`);
    }
    chunks.push(buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
