import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { readBody } from '@tollgate/kit/body';

/** How to reach a counter API. Paths of PEM files; empty for none. */
export interface CounterClientOptions {
  /** `http://host:port` or `https://host:port`. */
  readonly address: string;
  readonly token: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly timeoutMs: number;
}

export interface CounterCall {
  readonly method: string;
  /** With the query. */
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
  const url = new URL(path, options.address);
  const message = await send(
    url,
    { method, headers: headersOf(options), ...(await readTls(options)) },
    { body, timeoutMs: options.timeoutMs },
  );
  const text = await readBody(message, maxReplyBytes, () => new Error('the response is too large'));
  return { status: message.statusCode ?? 0, json: parseReply(text.toString()) };
}

function headersOf({ token }: CounterClientOptions): Record<string, string> {
  const json = { 'content-type': 'application/json' };
  return token === '' ? json : { ...json, authorization: `Bearer ${token}` };
}

async function readTls({ caFile, certFile, keyFile }: CounterClientOptions): Promise<RequestOptions> {
  const read = (path: string) => (path === '' ? Promise.resolve(undefined) : readFile(path));
  const [ca, cert, key] = await Promise.all([read(caFile), read(certFile), read(keyFile)]);
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
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
