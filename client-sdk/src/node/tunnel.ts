import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { ProxySettings } from './proxy-settings.ts';
import { type TlsSettings, withoutClientCertificate } from './tls-settings.ts';

/**
 * Asks the proxy for a tunnel to `host:port` and gives its raw socket.
 *
 * @throws Error with the proxy's status when it refuses, or the network's own.
 * @see RFC 9110 §9.3.6 https://www.rfc-editor.org/rfc/rfc9110#section-9.3.6
 */
export async function openTunnel(
  proxy: ProxySettings,
  target: { readonly host: string; readonly port: number },
  { tls, timeoutMs }: { readonly tls: TlsSettings; readonly timeoutMs: number },
): Promise<Socket> {
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  const authority = `${host}:${target.port}`;
  const options = {
    ...{ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: authority, agent: false as const },
    headers: {
      host: authority,
      ...(proxy.authorization !== undefined && { 'proxy-authorization': proxy.authorization }),
    },
  };
  const { servername } = proxy;
  const request =
    proxy.protocol === 'https:'
      ? httpsRequest({ ...options, ...withoutClientCertificate(tls), servername })
      : httpRequest(options);
  // The callers who waited for this connection may be gone: it ends by itself.
  const timer =
    timeoutMs > 0 ? setTimeout(() => request.destroy(tunnelTimeout(timeoutMs)), timeoutMs) : undefined;
  const refused = new Promise<never>((_resolve, reject) => {
    // A proxy that answers with a body instead of a tunnel may come here rather than to `connect`.
    request.once('response', (response) => {
      response.destroy();
      reject(proxyRefused(response.statusCode));
    });
  });
  request.end();
  try {
    const [response, socket]: [IncomingMessage, Socket] = await Promise.race([
      once(request, 'connect') as Promise<[IncomingMessage, Socket]>,
      refused,
    ]);
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return socket;
    socket.destroy();
    throw proxyRefused(statusCode);
  } finally {
    clearTimeout(timer);
  }
}

function tunnelTimeout(timeoutMs: number): Error {
  const error = new Error(`no tunnel through the proxy within ${timeoutMs} ms`);
  return Object.assign(error, { code: 'UND_ERR_CONNECT_TIMEOUT' });
}

function proxyRefused(status: number | undefined): Error {
  const hint = status === 407 ? ': it wants credentials (put them into the proxy URL)' : '';
  return Object.assign(new Error(`the proxy answered CONNECT with ${status}${hint}`), {
    code: 'ERR_PROXY_TUNNEL',
  });
}
