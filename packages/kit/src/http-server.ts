import type { Server } from 'node:http';
import { getErrorMessage } from './errors.ts';
import { HttpConnections, type HttpServerLimits } from './http-connections.ts';

/** Address of an HTTP server. */
export interface HttpServerOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** The part of an application, such as Fastify's, that a server needs. */
export interface HttpApplication {
  readonly server: Server;
  listen(options: HttpServerOptions): PromiseLike<unknown>;
  close(): PromiseLike<unknown>;
}

/** Starts and stops an HTTP application. */
export class HttpServer {
  readonly #app: HttpApplication;
  readonly #options: HttpServerOptions;
  readonly #connections: HttpConnections;

  constructor(app: HttpApplication, options: HttpServerOptions, limits: HttpServerLimits = {}) {
    this.#app = app;
    this.#options = options;
    this.#connections = new HttpConnections(app.server, limits);
  }

  /** Listens; resolves with the port. Rejects when the address is taken. */
  async start(): Promise<number> {
    const { port } = this.#options;
    await this.#app.listen({ ...this.#options });
    const address = this.#app.server.address();
    return typeof address === 'object' && address !== null ? address.port : port;
  }

  /**
   * Sends `Connection: close` with every response from now on, so that clients move to other
   * replicas before the stop.
   */
  closeAfterAnswers(): void {
    this.#connections.closeAfterAnswers();
  }

  /**
   * Refuses new connections, closes those without a request and completes requests in flight; those
   * left when `signal` aborts are cut off.
   */
  async stop(signal: AbortSignal): Promise<void> {
    const cut = (): void => this.#app.server.closeAllConnections();
    signal.addEventListener('abort', cut, { once: true });
    this.#connections.drain();
    await this.#app.close();
    signal.removeEventListener('abort', cut);
  }
}

/** Names of the settings that give a server its address. */
export interface ListenSettings {
  readonly host: string;
  readonly port: string;
}

/**
 * Waits for a server to listen. An error, most often a port in use, names the settings to correct.
 *
 * @throws Error with the server's error as its cause.
 */
export async function nameListenSettings<Started>(
  listening: Promise<Started>,
  { host, port }: ListenSettings,
): Promise<Started> {
  try {
    return await listening;
  } catch (cause) {
    const reason = getErrorMessage(cause);
    throw new Error(`cannot listen on the address set by ${host} and ${port}: ${reason}`, { cause });
  }
}
