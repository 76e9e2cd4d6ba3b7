import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { readBody } from '@tollgate/kit/body';
import { hostAndPort } from '@tollgate/kit/text';

/** How to reach a counter API. Files are PEM files. */
export interface CounterClientOptions {
  /** Empty for what `env`, the settings of the service, says. */
  readonly flags: {
    /** `http://host:port` or `https://host:port`. */
    readonly address: string;
    readonly 'token-file': string;
    readonly 'ca-file': string;
    readonly 'cert-file': string;
    readonly 'key-file': string;
    readonly 'server-name': string;
  };
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
}

export interface CounterCall {
  readonly method: string;
  /** Path with the query. */
  readonly path: string;
  readonly body?: unknown;
}

export type Json = Readonly<Record<string, unknown>>;

export interface CounterReply {
  readonly status: number;
  readonly json: Json;
}

/** A thousand refusals with long values. */
const maxReplyBytes = 16 * 1024 * 1024;

/** @throws Error when the call fails, or the response is not of a counter API. */
export async function callCounterApi(
  options: CounterClientOptions,
  { method, path, body }: CounterCall,
): Promise<CounterReply> {
  const url = new URL(path, options.flags.address || getOwnAddress(options.env));
  const message = await send(
    url,
    { method, headers: await readHeaders(options), ...(await readTls(options)) },
    { body, timeoutMs: options.timeoutMs },
  );
  const text = await readBody(message, maxReplyBytes, () => new Error('the response is too large'));
  return { status: message.statusCode ?? 0, json: parseReply(text.toString()) };
}

/** Loopback addresses by the address that means all. */
const loopbacks: Readonly<Record<string, string>> = { '': '127.0.0.1', '0.0.0.0': '127.0.0.1', '::': '::1' };

/** In the container of a service, the address of its own counter API. Empty without one. */
export function getOwnAddress({
  ADMIN_PORT = '',
  ADMIN_HOST = '',
  ADMIN_TLS_CERT,
}: NodeJS.ProcessEnv): string {
  if (ADMIN_PORT === '') return '';
  const host = loopbacks[ADMIN_HOST] ?? ADMIN_HOST;
  return `${ADMIN_TLS_CERT ? 'https' : 'http'}://${hostAndPort(host, Number(ADMIN_PORT))}`;
}

async function readHeaders({ flags, env }: CounterClientOptions): Promise<Record<string, string>> {
  const file = flags['token-file'];
  const token = file === '' ? (env.ADMIN_TOKEN ?? '') : (await readFile(file, 'utf8')).trim();
  const json = { 'content-type': 'application/json' };
  return token === '' ? json : { ...json, authorization: `Bearer ${token}` };
}

async function readTls({ flags, env }: CounterClientOptions): Promise<RequestOptions> {
  const read = (path: string) => (path === '' ? Promise.resolve(undefined) : readFile(path));
  const own = flags.address === '' ? env : {};
  const { ADMIN_TLS_CERT = '', ADMIN_TLS_KEY = '' } = own.ADMIN_TLS_CLIENT_CACERT ? own : {};
  const [ca, cert, key] = await Promise.all([
    read(flags['ca-file']),
    read(flags['cert-file'] || ADMIN_TLS_CERT),
    read(flags['key-file'] || ADMIN_TLS_KEY),
  ]);
  const servername = flags['server-name'];
  return {
    ...(own.ADMIN_TLS_CERT && ca === undefined && servername === '' && (await trustOnly(own.ADMIN_TLS_CERT))),
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(servername !== '' && { servername }),
  };
}

/** Accepts a server with the first certificate of a file, whatever names that has. */
async function trustOnly(certFile: string): Promise<RequestOptions> {
  const ca = new X509Certificate(await readFile(certFile)).toString();
  return { ca, allowPartialTrustChain: true, checkServerIdentity: () => undefined };
}

function send(
  url: URL,
  options: RequestOptions,
  { body, timeoutMs }: { readonly body: unknown; readonly timeoutMs: number },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const create = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = create(url, { ...options, signal, agent: false }, resolve);
    request.on('error', (error) =>
      reject(signal.aborted ? new Error(`no response within ${timeoutMs}ms`) : error),
    );
    const text = body === undefined ? '' : JSON.stringify(body);
    // Node sends none with DELETE.
    if (text !== '') request.setHeader('content-length', Buffer.byteLength(text));
    request.end(text);
  });
}

function parseReply(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return { ...value };
  } catch {
    // Another server, see below.
  }
  throw new Error('the response is not JSON: check that this is the port of the counter API (ADMIN_PORT)');
}
