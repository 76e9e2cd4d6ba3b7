import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/**
 * Sends a request as it is: `fetch` normalizes paths and joins repeated headers. Headers are
 * alternating names and values.
 */
export async function rawRequest(
  base: string,
  path: string,
  options: { readonly method?: string; readonly headers?: readonly string[]; readonly body?: string } = {},
): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(base);
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const headers = ['host', `${hostname}:${port}`, 'connection', 'close', ...(options.headers ?? [])];
  const sent = request({ hostname, port, path, method: options.method ?? 'GET', headers }, (response) => {
    text(response).then((body) => resolve({ status: response.statusCode ?? 0, text: body }), reject);
  });
  sent.on('error', reject);
  sent.end(options.body);
  return promise;
}
