import type { Logger } from '@tollgate/kit/logger';

/** Sends lines to a statsd server without ever waiting for it. */
export interface LineTransport {
  /** Largest text for one `send`, in bytes, so that little is lost when a bound is hit. */
  readonly maxChunkBytes: number;
  /** Starts connecting; an unreachable server is retried, and logged once. */
  start(): void;
  /** Sends whole lines, now or once connected. What exceeds the buffer is dropped and counted. */
  send(lines: string): void;
  /** Sends what is left for at most a second, then closes the socket. Idempotent. */
  close(): Promise<void>;
}

export interface LineTransportOptions {
  readonly host: string;
  readonly port: number;
  /** Bound of unsent lines; default 4 MiB, as in envoyproxy/ratelimit. */
  readonly maxBufferBytes?: number;
  readonly onDropped: (bytes: number) => void;
  /** Logs when the server becomes unreachable, and when it recovers. */
  readonly logger: Logger;
}

export const defaultMaxBufferBytes = 4 * 1024 * 1024;

/** How long `close` may take to send what is left. */
export const closeTimeoutMs = 1000;

/**
 * Logs one warning when a statsd server becomes unreachable and one when it recovers, however often
 * it is retried.
 */
export class OutageLog {
  readonly #options: Pick<LineTransportOptions, 'host' | 'port' | 'logger'>;
  #unreachable: boolean = false;

  constructor(options: Pick<LineTransportOptions, 'host' | 'port' | 'logger'>) {
    this.#options = options;
  }

  onFailure({ message, code }: NodeJS.ErrnoException): void {
    if (this.#unreachable) return;
    this.#unreachable = true;
    const { host, port, logger } = this.#options;
    // When all addresses of a name failed, only the code has the reason.
    const reason = message === '' ? code : message;
    logger.warn({ host, port, reason }, 'statsd server unreachable');
  }

  onSuccess(): void {
    if (!this.#unreachable) return;
    this.#unreachable = false;
    const { host, port, logger } = this.#options;
    logger.warn({ host, port }, 'statsd server reachable again');
  }
}
