import { hostAndPort } from '@tollgate/kit/text';
/** Where a Redis listens and what it wants to hear first. */
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

/** User name and password; Redis without ACLs has no user. */
export interface RedisCredentials {
  readonly username?: string;
  readonly password: string;
}

/** What came of reading an address. */
export type RedisAddressResult =
  | { readonly ok: true; readonly address: RedisAddress }
  | { readonly ok: false; readonly expected: string };

const expected =
  'host:port, redis://[user:password@]host[:port][?db=n] (rediss:// for TLS), or the path of a unix socket';
const refused: RedisAddressResult = { ok: false, expected };

/**
 * Reads KVSTORE_URL. A path (or `unix://path`) is a unix socket whatever the socket type says; the socket type
 * decides only where the text could be either.
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
  // As Go has it, no host is this machine: `:6379`.
  return tcpAddress(match?.[1] || match?.[2] || 'localhost', Number(match?.[3]));
}

function unixSocket(path: string): RedisAddressResult {
  return path === '' || path.includes('://') ? refused : { ok: true, address: { kind: 'unix', path } };
}

function tcpAddress(host: string, port: number, more: UrlParts = {}): RedisAddressResult {
  const isPort = port > 0 && port <= 65_535;
  return host === '' || !isPort ? refused : { ok: true, address: { kind: 'tcp', host, port, ...more } };
}

/** What only a URL can say. */
type UrlParts = Pick<Extract<RedisAddress, { kind: 'tcp' }>, 'credentials' | 'db' | 'tls'>;

const defaultPort = 6379;

function parseUrl(text: string): RedisAddressResult {
  const url = URL.parse(text);
  const credentials = url === null ? undefined : credentialsOf(url);
  const db = url?.searchParams.get('db') ?? url?.pathname.slice(1) ?? '';
  if (url === null || credentials === 'malformed' || !/^\d{0,9}$/.test(db)) {
    return refused;
  }
  return tcpAddress(url.hostname.replace(/^\[|\]$/g, ''), url.port === '' ? defaultPort : Number(url.port), {
    ...(credentials === undefined ? {} : { credentials }),
    ...(db === '' ? {} : { db: Number(db) }),
    ...(url.protocol === 'rediss:' ? { tls: true } : {}),
  });
}

/** A user without a password is no login; Redis would refuse the empty one. */
function credentialsOf({ username, password }: URL): RedisCredentials | undefined | 'malformed' {
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

/** Reads KVSTORE_AUTH, `password` or `user:password`; undefined when empty. */
export function parseRedisAuth(auth: string): RedisCredentials | undefined {
  if (auth === '') {
    return undefined;
  }
  const colon = auth.indexOf(':');
  const password = auth.slice(colon + 1);
  return colon <= 0 ? { password } : { username: auth.slice(0, colon), password };
}

/** The address as it may be logged: without credentials. */
export function describeRedisAddress(address: RedisAddress): string {
  if (address.kind === 'unix') {
    return address.path;
  }
  return hostAndPort(address.host, address.port);
}
