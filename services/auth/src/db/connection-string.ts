import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { getErrorMessage } from '@tollgate/kit/errors';
import { Client, type ClientConfig } from 'pg';

/** `if offered`: plaintext if the server does not support TLS. */
type DatabaseTls =
  | { readonly use: 'never' }
  | { readonly use: 'if offered' | 'always'; readonly options: ConnectionOptions };

/**
 * A connection string without TLS parameters, which the two client libraries interpret differently.
 */
export interface ParsedConnectionString {
  /** Also without `search_path`: DB_NAMESPACE sets the schema. */
  readonly url: string;
  readonly tls: DatabaseTls;
}

export const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

const ownParameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'search_path'];
/** The message of pg, which has no code. */
const notOffered = 'The server does not support SSL connections';

/**
 * Parses a connection string as libpq and pgx do. Without `sslmode` connections are encrypted if
 * the server supports it. Up to `require` the certificate is not verified, unless `sslrootcert` is
 * set.
 *
 * @throws UnreadableCertificate
 * @see https://www.postgresql.org/docs/current/libpq-ssl.html
 */
export function parseConnectionString(databaseUrl: string): ParsedConnectionString {
  const at = databaseUrl.indexOf('?');
  if (at === -1) return { url: databaseUrl, tls: parseTls(new URLSearchParams()) };
  const parameters = new URLSearchParams(databaseUrl.slice(at + 1));
  const others = databaseUrl
    .slice(at + 1)
    .split('&')
    .filter((pair) => !ownParameters.includes(pair.split('=', 1)[0] ?? ''));
  const query = others.join('&');
  return { url: databaseUrl.slice(0, at) + (query === '' ? '' : `?${query}`), tls: parseTls(parameters) };
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
 * Opens a connection. `prepare` is called with each client before it connects; there may be two.
 */
export async function openClient(
  databaseUrl: string,
  config: ClientConfig,
  prepare: (client: Client) => void,
): Promise<Client> {
  const { url, tls } = parseConnectionString(databaseUrl);
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
