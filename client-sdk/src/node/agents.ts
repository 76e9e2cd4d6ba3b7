import { type AgentOptions, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';
import type { ProxySettings } from './proxy-settings.ts';
import { type TlsSettings, withoutClientCertificate } from './tls-settings.ts';
import { openTunnel } from './tunnel.ts';

/** Keeps connections for the next request, by the way they take. */
export interface Agents {
  /** For plain http targets, and for plain http requests to an http proxy. */
  readonly http: HttpAgent;
  /** For https targets that are reached directly. */
  readonly https: HttpsAgent;
  /** For https proxies that are given absolute-form requests. */
  readonly httpsProxy: HttpsAgent;
  /** For https targets behind the proxy. */
  readonly tunnel: HttpsAgent | undefined;
  destroy(): void;
}

/** How connections are made. */
export interface AgentSettings {
  readonly tls: TlsSettings;
  readonly proxy?: ProxySettings;
  /** 0 means no end. */
  readonly connectTimeoutMs: number;
}

/** Opens nothing yet. */
export function createAgents(pool: AgentOptions, settings: AgentSettings): Agents {
  const { tls, proxy } = settings;
  const http = new HttpAgent(pool);
  const https = new HttpsAgent({ ...pool, ...tls });
  const httpsProxy = new HttpsAgent({ ...pool, ...withoutClientCertificate(tls) });
  const tunnel = proxy === undefined ? undefined : new TunnelAgent(pool, { ...settings, proxy });
  return {
    http,
    https,
    httpsProxy,
    tunnel,
    destroy() {
      for (const agent of [http, https, httpsProxy, tunnel]) agent?.destroy();
    },
  };
}

/** How Node hands a connection back to an agent's pool. */
type Connected = (error: Error | null, socket: Duplex) => void;

/** The only way into the pool of Node's agents is to override `createConnection`: hence a subclass. */
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
      // Addresses have no servername (Node gives an empty one); their certificates are checked against `host`.
      const name = servername === undefined || servername === '' ? {} : { servername };
      const secure = tlsConnect({ ...this.#tls, socket, host, ...name });
      connected?.(null, secure);
    } catch (error) {
      // With an error Node looks at no socket; its type says otherwise.
      connected?.(error as Error, undefined as unknown as Duplex);
    }
  }
}
