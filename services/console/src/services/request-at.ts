import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { addAbortSignal } from 'node:stream';

export interface RequestOptions {
  /** The address to connect to. Without it, DNS gives one. */
  readonly address: string | undefined;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
  /** Also ends a response whose body is being read. */
  readonly signal: AbortSignal;
}

/**
 * Sends a request to one address of the name in a URL. The Host header has the name, for which the
 * certificate is verified; `fetch` can do that only for the address that DNS gives it.
 */
export async function requestAt(
  url: string,
  { address, body, signal, ...options }: RequestOptions,
): Promise<IncomingMessage> {
  const sendRequest = new URL(url).protocol === 'https:' ? requestHttps : requestHttp;
  const lookup = address === undefined ? {} : { lookup: lookupOf(address) };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // Agents keep connections by name, and would reuse that to another address.
    const outgoing = sendRequest(url, { ...options, ...lookup, signal, agent: false }, resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
  return addAbortSignal(signal, response);
}

function lookupOf(address: string): LookupFunction {
  const family = isIP(address);
  return (_host, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
