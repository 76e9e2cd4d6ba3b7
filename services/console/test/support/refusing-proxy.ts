import { buffer } from 'node:stream/consumers';
import { startWebServer } from '@tollgate/testkit/web-server';
import type { Test } from 'tap';

/** A proxy of an auth server that can spoil access tokens. */
export interface RefusingProxy {
  readonly url: string;
  /** URL of the auth server. */
  target: string;
  /** How many of the next requests to the admin API have an invalid token. */
  refusals: number;
}

/** Starts a proxy; stopped when the test ends. */
export async function startRefusingProxy(t: Test): Promise<RefusingProxy> {
  const { port } = await startWebServer(t, async (request, response) => {
    const path = request.url ?? '';
    const headers = new Headers(request.headers as Record<string, string>); // no repeated ones
    for (const name of ['host', 'connection', 'content-length', 'transfer-encoding']) headers.delete(name);
    if (path.startsWith('/admin/') && proxy.refusals > 0) {
      proxy.refusals -= 1;
      headers.set('authorization', 'Bearer expired');
    }
    const body = await buffer(request);
    const answer = await fetch(proxy.target + path, {
      ...{ method: request.method ?? 'GET', redirect: 'manual' as const },
      headers,
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(await answer.text());
  });
  const proxy: RefusingProxy = { url: `http://127.0.0.1:${port}`, target: '', refusals: 0 };
  return proxy;
}
