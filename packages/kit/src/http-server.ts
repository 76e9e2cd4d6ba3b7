import type { Server } from 'node:http';
import { followConnections } from './http-connections.ts';

/** Where an HTTP server listens. */
export interface HttpServerOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** An HTTP server. */
export interface HttpServer {
  /** Listens; resolves with the port. Rejects when the address is taken. */
  start(): Promise<number>;
  /** Says `Connection: close` in every answer from now on, so that clients with open connections go elsewhere before the stop. */
  closeAfterAnswers(): void;
  /**
   * Refuses new connections, closes those without a request and lets requests in flight end; those left when `signal` aborts
   * are cut off.
   */
  stop(signal: AbortSignal): Promise<void>;
}

/** What is needed of a Fastify application. */
export interface HttpApplication {
  readonly server: Server;
  listen(options: HttpServerOptions): PromiseLike<unknown>;
  close(): PromiseLike<unknown>;
}

/** Gives a Fastify application the shape of a lifecycle component. */
export function createHttpServer(app: HttpApplication, { host, port }: HttpServerOptions): HttpServer {
  const connections = followConnections(app.server);
  return {
    closeAfterAnswers: connections.closeAfterAnswers,
    async start() {
      await app.listen({ host, port });
      const address = app.server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    async stop(signal) {
      const cut = (): void => app.server.closeAllConnections();
      signal.addEventListener('abort', cut, { once: true });
      connections.drain();
      await app.close();
      signal.removeEventListener('abort', cut);
    },
  };
}
