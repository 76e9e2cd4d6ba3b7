import { type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface RawResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Sends a request as it is: `fetch` normalizes paths and joins repeated headers. Headers are
 * alternating names and values.
 */
export async function rawRequest(
  base: string,
  path: string,
  options: { readonly method?: string; readonly headers?: readonly string[]; readonly body?: string } = {},
): Promise<RawResponse> {
  const { hostname, port } = new URL(base);
  const { promise, resolve, reject } = Promise.withResolvers<RawResponse>();
  const headers = ['host', `${hostname}:${port}`, 'connection', 'close', ...(options.headers ?? [])];
  const sent = request({ hostname, port, path, method: options.method ?? 'GET', headers }, (response) => {
    const { statusCode: status = 0, headers } = response;
    text(response).then((body) => resolve({ status, headers, text: body }), reject);
  });
  sent.on('error', reject);
  sent.end(options.body);
  return promise;
}
