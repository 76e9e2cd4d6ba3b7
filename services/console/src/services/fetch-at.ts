import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** Statuses of responses without a body, which `Response` accepts with none only. */
const withoutBody: readonly number[] = [204, 205, 304];

/**
 * Fetches from one address of the name in a URL. The Host header has the name, for which the
 * certificate is verified; `fetch` can do that only for the address that DNS gives it.
 */
export function fetchAt(address: string) {
  const lookup: LookupFunction = (_host, options, callback) => {
    const family = isIP(address);
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
  return async (request: Request, { signal }: { readonly signal: AbortSignal }): Promise<Response> => {
    const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
    const { method } = request;
    const sendRequest = new URL(request.url).protocol === 'https:' ? requestHttps : requestHttp;
    const headers = Object.fromEntries(request.headers);
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      // Agents keep connections by name, and would reuse that to another address.
      const options = { method, headers, lookup, signal, agent: false };
      const outgoing = sendRequest(request.url, options, resolve);
      outgoing.on('error', reject);
      outgoing.end(body);
    });
    const { statusCode: status = 0, statusMessage: statusText = '' } = message;
    const content = await buffer(message);
    const isEmpty = withoutBody.includes(status);
    const type = message.headers['content-type'];
    return new Response(isEmpty ? null : new Uint8Array(content), {
      status,
      statusText,
      ...(type && { headers: { 'content-type': type } }),
    });
  };
}
