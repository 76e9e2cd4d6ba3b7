import { lookup as lookUpName } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { readBody } from '@tollgate/kit/body';

// Networks that are not the Internet. @see
// https://www.iana.org/assignments/iana-ipv4-special-registry
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

// Never fetched from: this host, link-local (which has the metadata services of clouds), the
// platform services of Azure, documentation, multicast, and addresses that translate to others
// (NAT64, 6to4, Teredo, SIIT).
const reservedNetworks = blockList([
  '0.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '::/128',
  '::ffff:0:0:0/96',
  '64:ff9b::/32',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fd00:ec2::/32',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]);

// IPv4-compatible addresses, without `::1`. @see RFC 4291 §2.5.5.1
reservedNetworks.addRange('::2', '::ffff:ffff', 'ipv6');

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** IPv4-mapped addresses are IPv4. */
export function classifyAddress(address: string): 'public' | 'private' | 'reserved' {
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  if (reservedNetworks.check(address, family)) return 'reserved';
  return privateNetworks.check(address, family) ? 'private' : 'public';
}

interface SendOptions {
  /** Hosts that may have a private address; in lower case. */
  readonly privateHosts: readonly string[];
  readonly timeoutMs: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** PEM of the CAs of the server. Default: those of the system. */
  readonly ca?: string | undefined;
  /** Default: the resolver of the system. */
  readonly lookUp?: typeof lookUpName;
}

interface FetchTextOptions extends SendOptions {
  readonly maxBytes: number;
  /** Also sent to redirect targets, so no secrets, unless `maxRedirects` is 0. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default 3. */
  readonly maxRedirects?: number;
  /** Requires https, except for `privateHosts`, also of redirect targets. */
  readonly requiresHttps?: boolean;
}

export class FetchRejected extends Error {
  override readonly name = 'FetchRejected';
  /** The status of the response; undefined without one. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

/**
 * Fetches a text from a URL that may be hostile. All hosts, including those of redirects, must have
 * public addresses or be in `privateHosts`; the address that was checked is the one connected to
 * (DNS rebinding). Total time and size are limited.
 *
 * @throws FetchRejected, or an error of the network.
 */
export async function fetchText(url: URL, options: FetchTextOptions): Promise<string> {
  return (await fetchResponse(url, options)).text;
}

/** Fetches a text as {@link fetchText} does, and returns the headers, too. */
export async function fetchResponse(
  url: URL,
  options: FetchTextOptions,
): Promise<{ readonly text: string; readonly headers: IncomingHttpHeaders }> {
  const signal = AbortSignal.timeout(options.timeoutMs);
  const { maxRedirects = 3, requiresHttps = false } = options;
  let at = url;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    if (requiresHttps) rejectPlaintext(at, options.privateHosts);
    const response = await send(at, options, { signal });
    const location = getRedirect(response);
    if (location === undefined)
      return { text: await readText(response, options.maxBytes), headers: response.headers };
    response.destroy();
    at = new URL(location, at);
  }
  throw new FetchRejected(`more than ${maxRedirects} redirects`);
}

/**
 * Posts a text to a URL with the restrictions of {@link fetchText}, and ignores the body of the
 * response. Requires https, except for `privateHosts`, and does not follow redirects.
 *
 * @throws FetchRejected if the status is not 2xx, or an error of the network.
 */
export async function postText(url: URL, options: SendOptions & { readonly body: string }): Promise<void> {
  rejectPlaintext(url, options.privateHosts);
  const signal = AbortSignal.timeout(options.timeoutMs);
  const response = await send(url, options, { signal, body: options.body });
  const { statusCode = 0 } = response;
  response.destroy();
  if (statusCode < 200 || statusCode > 299)
    throw new FetchRejected(`the response has status ${statusCode}`, statusCode);
}

/**
 * Posts a text as {@link postText} does, and returns the body of the response.
 *
 * @throws FetchRejected if the status is not 200, or an error of the network.
 */
export async function postForText(
  url: URL,
  options: SendOptions & { readonly body: string; readonly maxBytes: number },
): Promise<string> {
  rejectPlaintext(url, options.privateHosts);
  const signal = AbortSignal.timeout(options.timeoutMs);
  return readText(await send(url, options, { signal, body: options.body }), options.maxBytes);
}

function rejectPlaintext(url: URL, privateHosts: readonly string[]): void {
  if (url.protocol !== 'https:' && !privateHosts.includes(getHost(url)))
    throw new FetchRejected(`${url.protocol} is not https`);
}

/**
 * A `fetch` with the restrictions of {@link fetchText}, for URLs that administrators set. Requires
 * https, does not follow redirects, and leaves the limits of time and size to the caller.
 */
export function guardedFetch(privateHosts: readonly string[]) {
  return async (url: string, init: RequestInit): Promise<Response> => {
    const request = new Request(url, init);
    const { method, signal } = request;
    const target = new URL(url);
    if (target.protocol !== 'https:') throw new FetchRejected(`${target.protocol} is not https`);
    const body = request.body === null ? {} : { body: await request.text() };
    const options = { privateHosts, headers: Object.fromEntries(request.headers) };
    const message = await send(target, options, { signal, method, ...body });
    const { statusCode: status = 0, headersDistinct } = message;
    const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
      values.map((value): [string, string] => [name, value]),
    );
    const hasBody = ![204, 205, 304].includes(status);
    if (!hasBody) message.resume();
    // The library's type of streams differs from that of the DOM, not the streams.
    const stream = hasBody ? (Readable.toWeb(message) as ReadableStream) : null;
    return new Response(stream, { status, headers });
  };
}

/** Bounds how long a configured URL is checked; a name that is not resolved by then passes. */
const resolveTimeoutMs = 3_000;

/**
 * Why a URL cannot be fetched: its form, or an address that its host has now. Addresses are checked
 * again with each request, so that a name which is not resolved now is no problem here.
 */
export async function findUrlProblem(
  text: string,
  privateHosts: readonly string[],
): Promise<string | undefined> {
  const url = URL.parse(text);
  if (url === null) return 'it is not a URL';
  if (url.username !== '' || url.password !== '') return 'it has a user or password';
  const host = getHost(url);
  for (const address of await resolve(host)) {
    const problem = findProblem(host, address, privateHosts);
    if (problem !== undefined) return problem.message;
  }
  return undefined;
}

/** Names below `localhost` are this machine, also where DNS does not know them (RFC 6761 §6.3). */
async function resolve(host: string): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host];
  if (host.endsWith('.localhost')) return ['127.0.0.1'];
  const timeout = new AbortController();
  const found = await Promise.race([
    lookup(host, { all: true }).catch(() => []),
    setTimeout(resolveTimeoutMs, [], { signal: timeout.signal }).catch(() => []),
  ]);
  timeout.abort();
  return found.map(({ address }) => address);
}

function getHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
}

/** Without a method, sends a body with POST, and GET without one. */
function send(
  url: URL,
  {
    privateHosts,
    headers,
    ca,
    lookUp = lookUpName,
  }: Pick<SendOptions, 'privateHosts' | 'headers' | 'ca' | 'lookUp'>,
  {
    signal,
    body,
    method = body === undefined ? 'GET' : 'POST',
  }: { readonly signal: AbortSignal; readonly body?: string; readonly method?: string },
): Promise<IncomingMessage> {
  const host = getHost(url);
  const check = (address: string): Error | undefined => findProblem(host, address, privateHosts);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new FetchRejected(`${url.protocol} is neither http nor https`);
  if (url.username !== '' || url.password !== '') throw new FetchRejected('the URL has a user or password');
  // The lookup function is not called for addresses.
  const problem = isIP(host) === 0 ? undefined : check(host);
  if (problem) throw problem;
  const options = {
    method,
    signal,
    lookup: guardedLookup(check, lookUp),
    agent: false,
    headers: { accept: 'text/html, */*', ...headers },
    ...(ca !== undefined && { ca }),
  };
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, resolve);
    request.once('error', reject);
    request.end(body);
  });
}

function findProblem(host: string, address: string, privateHosts: readonly string[]): Error | undefined {
  const network = classifyAddress(address);
  if (network === 'public') return undefined;
  if (network === 'private' && privateHosts.includes(host)) return undefined;
  return new FetchRejected(`${host} has the address ${address}, which is not public`);
}

/** Rejects a name if any of its addresses is rejected: Node may connect to any of them. */
function guardedLookup(
  check: (address: string) => Error | undefined,
  lookUp: typeof lookUpName,
): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }, (error, addresses) => {
      const problem = error ?? addresses.map(({ address }) => check(address)).find(Boolean);
      const [first] = addresses ?? [];
      if (problem || first === undefined) callback(problem ?? new FetchRejected('no address'), '', 0);
      else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function getRedirect({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? headers.location : undefined;
}

async function readText(response: IncomingMessage, maxBytes: number): Promise<string> {
  if (response.statusCode !== 200) {
    response.destroy();
    throw new FetchRejected(`the response has status ${response.statusCode}`);
  }
  const tooLarge = () => new FetchRejected(`the response has more than ${maxBytes} bytes`);
  return (await readBody(response, maxBytes, tooLarge)).toString();
}
