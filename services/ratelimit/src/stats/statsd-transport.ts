import type { Logger } from '@tollgate/kit/logger';

/** Carries lines to a statistics server without ever waiting for it. */
export interface LineTransport {
  /** Largest text in bytes that should be given to one `send`, so that little is lost when a bound is hit. */
  readonly maxChunkBytes: number;
  /** Starts connecting; a server that is away is tried again, and told of once. */
  start(): void;
  /** Sends whole lines, now or once connected. What does not fit into the buffer is dropped and counted. */
  send(lines: string): void;
  /** Sends what is left for at most a second, then releases the socket. Idempotent. */
  close(): Promise<void>;
}

/** What every transport needs. */
export interface LineTransportDeps {
  /** Called with the number of bytes that were given up. */
  readonly onDropped: (bytes: number) => void;
  /** Told when the server cannot be reached and when it is back. */
  readonly logger: Logger;
}

/** What every transport is told. */
export interface LineTransportOptions {
  readonly host: string;
  readonly port: number;
  /** Bound of what waits to be sent; default 4 MiB, as in the original. */
  readonly maxBufferBytes?: number;
}

/** Default of `maxBufferBytes`. */
export const defaultMaxBufferBytes = 4 * 1024 * 1024;

/** How long `close` may take to get rid of what is left. */
export const closeTimeoutMs = 1000;

/** Tells when a server goes away and when it is back, however often it is tried in between. */
export interface OutageLog {
  /** An attempt to reach the server failed. */
  failed(error: NodeJS.ErrnoException): void;
  /** The server was reached. */
  reached(): void;
}

/** Makes the log of a statsd server's outages: two warnings for each, so that who sees the one sees the other. */
export function createOutageLog(
  { host, port }: { readonly host: string; readonly port: number },
  logger: Logger,
): OutageLog {
  let away = false;
  return {
    failed({ message, code }) {
      if (away) return;
      away = true;
      // Where all addresses of a name were tried in vain, only the code says why.
      const reason = message === '' ? code : message;
      logger.warn({ host, port, reason }, 'statsd server cannot be reached');
    },
    reached() {
      if (!away) return;
      away = false;
      logger.warn({ host, port }, 'statsd server is back');
    },
  };
}
