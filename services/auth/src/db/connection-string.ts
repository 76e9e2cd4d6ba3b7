import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { getErrorMessage } from '@tollgate/kit/errors';
import { Client, type ClientConfig } from 'pg';
import { NoWritableHost } from './failures.ts';

/** `if offered`: plaintext if the server does not support TLS. */
type DatabaseTls =
  | { readonly use: 'never' }
  | { readonly use: 'if offered' | 'always'; readonly options: ConnectionOptions };

/**
 * A connection string without TLS parameters, which the two client libraries interpret differently.
 */
export interface ParsedConnectionString {
  /**
   * One for each host, in their order; at least one. Also without `search_path`: DB_NAMESPACE sets
   * the schema.
   */
  readonly urls: readonly [string, ...string[]];
  readonly tls: DatabaseTls;
}

export const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/** Values of `target_session_attrs` with which the host that accepts writes is used. */
export const sessionTargets = ['any', 'read-write', 'primary'] as const;

const ownParameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'search_path', 'target_session_attrs'];
/** The message of pg, which has no code. */
const notOffered = 'The server does not support SSL connections';

/**
 * Parses a connection string as libpq and pgx do. It may have several hosts. Without `sslmode`
 * connections are encrypted if the server supports it. Up to `require` the certificate is not
 * verified, unless `sslrootcert` is set.
 *
 * @throws UnreadableCertificate
 * @see https://www.postgresql.org/docs/current/libpq-ssl.html
 */
export function parseConnectionString(databaseUrl: string): ParsedConnectionString {
  const at = databaseUrl.indexOf('?');
  const base = at === -1 ? databaseUrl : databaseUrl.slice(0, at);
  const query = at === -1 ? '' : databaseUrl.slice(at + 1);
  const others = query
    .split('&')
    .filter((pair) => pair !== '' && !ownParameters.includes(pair.split('=', 1)[0] ?? ''));
  const kept = others.length === 0 ? '' : `?${others.join('&')}`;
  const [first, ...rest] = splitHosts(base).map((url) => url + kept);
  return { urls: [first ?? databaseUrl, ...rest], tls: parseTls(new URLSearchParams(query)) };
}

/** `postgres://user@a:1,b:2/name` is a URL for each host. */
function splitHosts(base: string): readonly string[] {
  const [, before = '', hosts = '', after = ''] = /^([a-z]+:\/\/(?:[^/]*@)?)([^/]*)(.*)$/i.exec(base) ?? [];
  return hosts.includes(',') ? hosts.split(',').map((host) => before + host + after) : [base];
}

function parseTls(parameters: URLSearchParams): DatabaseTls {
  const rootCertificate = parameters.get('sslrootcert');
  const mode = rootCertificate === 'system' ? 'verify-full' : (parameters.get('sslmode') ?? 'prefer');
  const options: ConnectionOptions = {
    ...(rootCertificate !== null &&
      rootCertificate !== 'system' && { ca: readPem(rootCertificate, 'sslrootcert') }),
    ...pemOption('cert', parameters.get('sslcert'), 'sslcert'),
    ...pemOption('key', parameters.get('sslkey'), 'sslkey'),
  };
  switch (mode) {
    case 'disable':
      return { use: 'never' };
    case 'allow':
    case 'prefer':
      return { use: 'if offered', options: { ...options, rejectUnauthorized: false } };
    case 'verify-full':
      return { use: 'always', options };
    case 'verify-ca':
      return { use: 'always', options: { ...options, checkServerIdentity: () => undefined } };
    default:
      // With a CA, `require` is the same as `verify-ca`.
      return options.ca === undefined
        ? { use: 'always', options: { ...options, rejectUnauthorized: false } }
        : { use: 'always', options: { ...options, checkServerIdentity: () => undefined } };
  }
}

function pemOption(key: 'cert' | 'key', path: string | null, parameter: string): ConnectionOptions {
  return path === null ? {} : { [key]: readPem(path, parameter) };
}

function readPem(path: string, parameter: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const because = getErrorMessage(cause);
    throw new UnreadableCertificate(`${parameter} of DATABASE_URL cannot be read: ${because}`);
  }
}

/** A file of a TLS parameter cannot be read. */
export class UnreadableCertificate extends Error {}

/**
 * Opens a connection, to the host that accepts writes if there are several. `prepare` is called
 * with each client before it connects; there may be two.
 */
export async function openClient(
  databaseUrl: string,
  config: ClientConfig,
  prepare: (client: Client) => void,
): Promise<Client> {
  const parsed = parseConnectionString(databaseUrl);
  return openAt({ url: await findWritableHost(parsed), tls: parsed.tls }, config, prepare);
}

async function openAt(
  { url, tls }: { readonly url: string; readonly tls: DatabaseTls },
  config: ClientConfig,
  prepare: (client: Client) => void,
): Promise<Client> {
  const open = async (ssl: ConnectionOptions | false): Promise<Client> => {
    const client = new Client({ ...config, connectionString: url, ssl });
    prepare(client);
    await client.connect();
    return client;
  };
  if (tls.use === 'never') return open(false);
  try {
    return await open(tls.options);
  } catch (error) {
    const isPlain = tls.use === 'if offered' && error instanceof Error && error.message === notOffered;
    if (!isPlain) throw error;
    return open(false);
  }
}

/** Statements wait for it during a failover. */
const probeTimeoutMs = 3_000;

const probeConfig: ClientConfig = {
  connectionTimeoutMillis: probeTimeoutMs,
  query_timeout: probeTimeoutMs,
  application_name: 'tollgate-auth-probe',
};

/**
 * The URL of the first host to answer that it accepts writes: a host that hangs delays nothing. A
 * single host is not asked.
 *
 * @throws NoWritableHost
 */
export async function findWritableHost({ urls, tls }: ParsedConnectionString): Promise<string> {
  if (urls.length === 1) return urls[0];
  const attempts = urls.map(async (url) => {
    await checkWritable(url, tls);
    return url;
  });
  try {
    return await Promise.any(attempts);
  } catch (cause) {
    throw new NoWritableHost(`no host of DATABASE_URL accepts writes: ${getErrorMessage(cause)}`, { cause });
  }
}

async function checkWritable(url: string, tls: DatabaseTls): Promise<void> {
  let client: Client | undefined;
  try {
    client = await openAt({ url, tls }, probeConfig, (next) => {
      client = next;
      next.on('error', () => undefined);
    });
    const { rows } = await client.query(
      `select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as refuses`,
    );
    if (rows[0]?.refuses !== false) throw new Error(`${client.host}:${client.port} accepts no writes`);
  } finally {
    // Not awaited: a host that hangs does not answer this either.
    client?.end().catch(() => undefined);
  }
}
