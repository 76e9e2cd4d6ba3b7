import { once } from 'node:events';
import {
  type AgentOptions,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';
import type { ProxySettings } from './proxy.ts';
import { type TlsSettings, withoutClientCertificate } from './tls.ts';

/**
 * Opens a tunnel to `host:port` through the proxy and returns its raw socket.
 *
 * @throws Error with the proxy's status if it refuses, or the network's own.
 * @see RFC 9110 §9.3.6 https://www.rfc-editor.org/rfc/rfc9110#section-9.3.6
 */
async function openTunnel(
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
  // The callers that waited for this connection may be gone.
  const timer =
    timeoutMs > 0 ? setTimeout(() => request.destroy(tunnelTimeout(timeoutMs)), timeoutMs) : undefined;
  const refused = new Promise<never>((_resolve, reject) => {
    // A proxy that responds with a body instead of a tunnel may cause this event instead of
    // `connect`.
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
  const hint = status === 407 ? ': it requires credentials (add them to the proxy URL)' : '';
  return Object.assign(new Error(`the proxy responded to CONNECT with ${status}${hint}`), {
    code: 'ERR_PROXY_TUNNEL',
  });
}

/** How connections are made. */
export interface AgentSettings {
  readonly tls: TlsSettings;
  readonly proxy?: ProxySettings;
  /** 0 means no limit. */
  readonly connectTimeoutMs: number;
}

/** The connection pools of a transport, one for each kind of route. */
export class Agents {
  /** Agent of plain http targets, and of plain http requests to an http proxy. */
  readonly http: HttpAgent;
  /** Agent of https targets without a proxy. */
  readonly https: HttpsAgent;
  /** Agent of absolute-form requests to https proxies. */
  readonly httpsProxy: HttpsAgent;
  /** Agent of https targets behind the proxy. */
  readonly tunnel: HttpsAgent | undefined;

  constructor(pool: AgentOptions, settings: AgentSettings) {
    const { tls, proxy } = settings;
    this.http = new HttpAgent(pool);
    this.https = new HttpsAgent({ ...pool, ...tls });
    this.httpsProxy = new HttpsAgent({ ...pool, ...withoutClientCertificate(tls) });
    this.tunnel = proxy === undefined ? undefined : new TunnelAgent(pool, { ...settings, proxy });
  }

  destroy(): void {
    for (const agent of [this.http, this.https, this.httpsProxy, this.tunnel]) agent?.destroy();
  }
}

/** The callback that returns a connection to an agent's pool. */
type Connected = (error: Error | null, socket: Duplex) => void;

/**
 * A subclass, because overriding `createConnection` is the only way to pool connections that Node
 * did not open.
 */
class TunnelAgent extends HttpsAgent {
  readonly #proxy: ProxySettings;
  readonly #tls: TlsSettings;
  readonly #timeoutMs: number;

  constructor(pool: AgentOptions, { proxy, tls, connectTimeoutMs }: Required<AgentSettings>) {
    super({ ...pool, ...tls });
    this.#proxy = proxy;
    this.#tls = tls;
    this.#timeoutMs = connectTimeoutMs;
  }

  override createConnection(
    options: { host?: string; port?: number | string; servername?: string },
    connected?: Connected,
  ): undefined {
    void this.#connect(options, connected);
  }

  async #connect(
    { host = 'localhost', port = 443, servername }: Parameters<TunnelAgent['createConnection']>[0],
    connected: Connected | undefined,
  ): Promise<void> {
    try {
      const target = { host, port: Number(port) };
      const socket = await openTunnel(this.#proxy, target, { tls: this.#tls, timeoutMs: this.#timeoutMs });
      // Addresses have no servername (Node passes an empty one); their certificates are verified
      // for `host`.
      const name = servername === undefined || servername === '' ? {} : { servername };
      const secure = tlsConnect({ ...this.#tls, socket, host, ...name });
      connected?.(null, secure);
    } catch (error) {
      // Node ignores the stream of a failure.
      connected?.(error instanceof Error ? error : new Error(String(error)), new Duplex());
    }
  }
}
