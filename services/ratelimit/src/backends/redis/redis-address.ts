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

const expected = 'host:port, redis://[user:password@]host:port[?db=n], or the path of a unix socket';

/**
 * Reads KVSTORE_URL. A path (or `unix://path`) is a unix socket whatever the socket type says; the socket type
 * decides only where the text could be either.
 */
export function parseRedisAddress(url: string, socketType: string): RedisAddressResult {
  if (url.startsWith('unix://')) {
    return { ok: true, address: { kind: 'unix', path: url.slice('unix://'.length) } };
  }
  if (/^rediss?:\/\//.test(url)) {
    return parseUrl(url);
  }
  if (url.startsWith('/') || (socketType === 'unix' && !/:\d+$/.test(url) && url !== '')) {
    return { ok: true, address: { kind: 'unix', path: url } };
  }
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:/\s]+)):(\d{1,5})$/.exec(url);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) {
    return { ok: false, expected };
  }
  return { ok: true, address: { kind: 'tcp', host, port } };
}

function parseUrl(text: string): RedisAddressResult {
  const url = URL.parse(text);
  const db = url?.searchParams.get('db') ?? url?.pathname.slice(1) ?? '';
  if (url === null || url.hostname === '' || !/^\d*$/.test(db)) {
    return { ok: false, expected };
  }
  return {
    ok: true,
    address: {
      kind: 'tcp',
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? 6379 : Number(url.port),
      ...(url.password === '' ? {} : { credentials: credentialsOf(url) }),
      ...(db === '' ? {} : { db: Number(db) }),
      ...(url.protocol === 'rediss:' ? { tls: true } : {}),
    },
  };
}

function credentialsOf(url: URL): RedisCredentials {
  const password = decodeURIComponent(url.password);
  return url.username === '' ? { password } : { username: decodeURIComponent(url.username), password };
}

/** Reads KVSTORE_AUTH, `password` or `user:password`; undefined when empty. */
export function parseRedisAuth(auth: string): RedisCredentials | undefined {
  if (auth === '') {
    return undefined;
  }
  const colon = auth.indexOf(':');
  return colon < 0 ? { password: auth } : { username: auth.slice(0, colon), password: auth.slice(colon + 1) };
}

/** The address as it may be logged: without credentials. */
export function describeRedisAddress(address: RedisAddress): string {
  return address.kind === 'unix' ? address.path : `${address.host}:${address.port}`;
}
