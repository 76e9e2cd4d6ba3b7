import type { Api } from './api.ts';

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
  /** Refuses new connections and lets requests in flight end; those left when `signal` aborts are cut off. */
  stop(signal: AbortSignal): Promise<void>;
}

/** Gives an application the shape of a lifecycle component. */
export function createHttpServer(api: Api, { host, port }: HttpServerOptions): HttpServer {
  return {
    async start() {
      await api.listen({ host, port });
      const address = api.server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    async stop(signal) {
      const cut = (): void => api.server.closeAllConnections();
      signal.addEventListener('abort', cut, { once: true });
      await api.close();
      signal.removeEventListener('abort', cut);
    },
  };
}
