import { hostAndPort } from '@tollgate/kit/text';

/** The address of a Redis server, with the options of its URL. */
export type RedisAddress =
  | {
      readonly kind: 'tcp';
      readonly host: string;
      readonly port: number;
      readonly credentials?: RedisCredentials;
      readonly db?: number;
      readonly tls?: boolean;
    }
  | { readonly kind: 'unix'; readonly path: string };

/** Without ACLs there is no user name. */
export interface RedisCredentials {
  readonly username?: string;
  readonly password: string;
}

export type RedisAddressResult =
  | { readonly ok: true; readonly address: RedisAddress }
  | { readonly ok: false; readonly expected: string };

const expected =
  'host:port, redis://[user:password@]host[:port][?db=n] (rediss:// for TLS), or the path of a unix socket';
const invalid: RedisAddressResult = { ok: false, expected };

/**
 * Parses KVSTORE_URL. A path (or `unix://path`) is a unix socket; the socket type decides only
 * where the text is ambiguous.
 */
export function parseRedisAddress(url: string, socketType: string): RedisAddressResult {
  if (url.startsWith('unix://')) {
    return unixSocket(url.slice('unix://'.length));
  }
  if (/^rediss?:\/\//i.test(url)) {
    return parseUrl(url);
  }
  const isUnix = socketType.toLowerCase() === 'unix';
  if (url.startsWith('/') || (isUnix && !/:\d+$/.test(url))) {
    return unixSocket(url);
  }
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/\s@]*)):(\d{1,5})$/.exec(url);
  // As in Go, `:6379` is this machine.
  return tcpAddress(match?.[1] || match?.[2] || 'localhost', Number(match?.[3]));
}

function unixSocket(path: string): RedisAddressResult {
  return path === '' || path.includes('://') ? invalid : { ok: true, address: { kind: 'unix', path } };
}

function tcpAddress(host: string, port: number, parts: UrlParts = {}): RedisAddressResult {
  const isPort = port > 0 && port <= 65_535;
  return host === '' || !isPort ? invalid : { ok: true, address: { kind: 'tcp', host, port, ...parts } };
}

/** Parts that only a URL has. */
type UrlParts = Pick<Extract<RedisAddress, { kind: 'tcp' }>, 'credentials' | 'db' | 'tls'>;

const defaultPort = 6379;

function parseUrl(text: string): RedisAddressResult {
  const url = URL.parse(text);
  const credentials = url === null ? undefined : parseCredentials(url);
  const db = url?.searchParams.get('db') ?? url?.pathname.slice(1) ?? '';
  if (url === null || credentials === 'malformed' || !/^\d{0,9}$/.test(db)) {
    return invalid;
  }
  return tcpAddress(url.hostname.replace(/^\[|\]$/g, ''), url.port === '' ? defaultPort : Number(url.port), {
    ...(credentials === undefined ? {} : { credentials }),
    ...(db === '' ? {} : { db: Number(db) }),
    ...(url.protocol === 'rediss:' ? { tls: true } : {}),
  });
}

/** A user name without a password is an error: Redis would refuse the empty password. */
function parseCredentials({ username, password }: URL): RedisCredentials | undefined | 'malformed' {
  if (password === '') {
    return username === '' ? undefined : 'malformed';
  }
  try {
    const decoded = { password: decodeURIComponent(password) };
    return username === '' ? decoded : { username: decodeURIComponent(username), ...decoded };
  } catch {
    return 'malformed';
  }
}

/** Parses KVSTORE_AUTH, `password` or `user:password`; undefined when empty. */
export function parseRedisAuth(auth: string): RedisCredentials | undefined {
  if (auth === '') {
    return undefined;
  }
  const colon = auth.indexOf(':');
  const password = auth.slice(colon + 1);
  return colon <= 0 ? { password } : { username: auth.slice(0, colon), password };
}

/** The address for logs, without credentials. */
export function describeRedisAddress(address: RedisAddress): string {
  if (address.kind === 'unix') {
    return address.path;
  }
  return hostAndPort(address.host, address.port);
}

/** The deployment that KVSTORE_TYPE and KVSTORE_URL name. */
export type RedisTarget =
  | { readonly kind: 'single'; readonly address: RedisAddress }
  | {
      readonly kind: 'sentinel';
      /** Name of the primary at the sentinels. */
      readonly master: string;
      readonly sentinels: readonly TcpRedisAddress[];
    }
  | {
      readonly kind: 'cluster';
      readonly nodes: readonly TcpRedisAddress[];
    };

/** An address other than a unix socket. */
export type TcpRedisAddress = Extract<RedisAddress, { kind: 'tcp' }>;

export type RedisTargetResult =
  | { readonly ok: true; readonly target: RedisTarget }
  | { readonly ok: false; readonly expected: string };

const singleForm =
  'one server; for a list of sentinels or nodes the type is sentinel or cluster (KVSTORE_TYPE, KVSTORE_PERSECOND_TYPE)';
const sentinelForm =
  'the name of the master and at least one sentinel: mymaster,host:port,host:port (logins have their own settings)';
const clusterForm = 'nodes of the cluster: host:port,host:port (a cluster has database 0 only)';

/** Parses KVSTORE_URL for a KVSTORE_TYPE; the socket type matters for a single server only. */
export function parseRedisTarget(
  type: RedisTarget['kind'],
  url: string,
  socketType: string,
): RedisTargetResult {
  if (type === 'single') {
    const parsed = parseRedisAddress(url, socketType);
    if (namesSeveralServers(url, parsed)) return { ok: false, expected: singleForm };
    return parsed.ok ? { ok: true, target: { kind: 'single', address: parsed.address } } : parsed;
  }
  const parts = url.split(',').map((part) => part.trim());
  if (type === 'cluster') {
    const nodes = tcpAddresses(parts);
    return nodes === undefined || nodes.some(({ db = 0 }) => db !== 0)
      ? { ok: false, expected: clusterForm }
      : { ok: true, target: { kind: 'cluster', nodes } };
  }
  const [master = '', ...rest] = parts;
  const sentinels = tcpAddresses(rest);
  const named = master !== '' && !/[:/@\s]/.test(master);
  // The login in a URL could be meant for the sentinels or for the primary.
  const plain = !rest.some((part) => part.includes('://'));
  return sentinels === undefined || !named || !plain
    ? { ok: false, expected: sentinelForm }
    : { ok: true, target: { kind: 'sentinel', master, sentinels } };
}

/** Login and TLS of any node's URL, which apply to all nodes, including those discovered later. */
export function getSharedOptions(
  nodes: readonly TcpRedisAddress[],
): Pick<TcpRedisAddress, 'credentials' | 'tls'> {
  const credentials = nodes.find((node) => node.credentials !== undefined)?.credentials;
  return {
    ...(credentials === undefined ? {} : { credentials }),
    ...(nodes.some(({ tls }) => tls === true) ? { tls: true } : {}),
  };
}

/** Whether the URL has credentials. */
export function hasCredentials(target: RedisTarget): boolean {
  if (target.kind === 'sentinel') return false;
  if (target.kind === 'cluster') return getSharedOptions(target.nodes).credentials !== undefined;
  return target.address.kind === 'tcp' && target.address.credentials !== undefined;
}

/** The target for logs, without credentials. */
export function describeRedisTarget(target: RedisTarget): string {
  switch (target.kind) {
    case 'single':
      return describeRedisAddress(target.address);
    case 'sentinel':
      return [target.master, ...target.sentinels.map(describeRedisAddress)].join(',');
    case 'cluster':
      return target.nodes.map(describeRedisAddress).join(',');
  }
}

/** A list without its type. A host name has no comma, but a password or a socket path may. */
function namesSeveralServers(url: string, parsed: ReturnType<typeof parseRedisAddress>): boolean {
  if (parsed.ok) return parsed.address.kind === 'tcp' && parsed.address.host.includes(',');
  return /,/.test(url.slice(url.lastIndexOf('@') + 1));
}

/** Undefined when the list is empty or an address is invalid. */
function tcpAddresses(parts: readonly string[]): readonly TcpRedisAddress[] | undefined {
  const addresses = parts.map((part) => parseRedisAddress(part, 'tcp'));
  const tcp = addresses.flatMap((result) =>
    result.ok && result.address.kind === 'tcp' ? [result.address] : [],
  );
  return tcp.length === 0 || tcp.length !== parts.length ? undefined : tcp;
}
