import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { type BackoffOptions, backoffDelays } from '../backoff.ts';
import { FailureLog, type Logger } from '../logger.ts';
import { scheduleByTimer } from '../time.ts';
import type { WatchedTls } from '../tls.ts';

/** Options of connections to one server. */
export interface ClientConnectionOptions {
  /** `host:port`. */
  readonly address: string;
  /** Plaintext without it. New material applies to new connections. */
  readonly tls?: WatchedTls | undefined;
  readonly logger: Logger;
}

/** Time for a connection, or for an answer to a PING, after which it is replaced. */
const patienceMs = 5_000;

const backoff: BackoffOptions = { initialMs: 50, maxMs: 2_000, jitter: 0.2 };

/**
 * A connection of HTTP/2 that is replaced when it ends: at once after a GOAWAY, else after a delay.
 */
export class ClientConnection {
  readonly #options: ClientConnectionOptions;
  readonly #failures: FailureLog;
  readonly #delayAfter = backoffDelays(backoff);
  #session: ClientHttp2Session | undefined;
  /** Failures since the last connection that worked. */
  #failed = 0;
  /** The server has sent its settings. */
  #ready: boolean = false;
  /** A call got no answer in time, and the server has not answered a PING since. */
  #suspected: boolean = false;
  #used: boolean = false;
  #closed: boolean = false;
  #cancelTimers: () => void = () => undefined;

  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    this.#failures = new FailureLog({
      logger: options.logger,
      message: 'gRPC connection failed',
      level: 'warn',
    });
  }

  /**
   * Whether a call has a chance: once a connection has failed, only when the next one works. Calls
   * do not wait for a server that is down.
   */
  get isUsable(): boolean {
    const session = this.#session;
    if (session === undefined || session.closed || session.destroyed || this.#suspected) return false;
    return this.#ready || this.#failed === 0;
  }

  open(): void {
    const { address, tls } = this.#options;
    const { cert, key, ca } = tls?.current() ?? {};
    const session = connect(`${tls ? 'https' : 'http'}://${address}`, {
      ...(cert && { cert }),
      ...(key && { key }),
      ...(ca && { ca }),
      settings: { enablePush: false },
    });
    this.#session = session;
    this.#ready = false;
    this.#suspected = false;
    this.#used = false;
    this.#cancelTimers = scheduleByTimer(patienceMs, () =>
      session.destroy(new Error(`${address} did not accept the connection within ${patienceMs} ms`)),
    );
    session.unref();
    session.once('remoteSettings', () => this.#becomeReady());
    session.on('error', (error) => this.#failures.log(error, { address }));
    // The session completes its calls, and ends. Without calls it is replaced after a delay: the
    // server may end each connection.
    session.once('goaway', () => {
      if (this.#used) this.#replace(session);
    });
    session.once('close', () => {
      if (this.#session !== session) return;
      this.#failed += 1;
      this.#replace(session, this.#delayAfter(this.#failed));
    });
  }

  /** @throws Error when the connection is not usable any more. */
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    if (this.#session === undefined) throw new Error('the connection is closed');
    this.#used = true;
    return this.#session.request(headers);
  }

  /**
   * Call when a call got no answer in time: until the server answers a PING, the connection is not
   * usable.
   */
  suspect(): void {
    const session = this.#session;
    if (session === undefined || session.closed || session.destroyed || this.#suspected) return;
    this.#suspected = true;
    // The timer of the connection runs already.
    if (!this.#ready) return;
    this.#cancelTimers = scheduleByTimer(patienceMs, () =>
      session.destroy(new Error(`${this.#options.address} did not answer a PING within ${patienceMs} ms`)),
    );
    session.ping(() => {
      if (this.#session === session && !session.destroyed) this.#becomeReady();
    });
  }

  /** Replaces the connection; calls in flight are completed. */
  renew(): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#replace(session);
    session.close();
  }

  close(): void {
    this.#closed = true;
    this.#cancelTimers();
    this.#session?.destroy();
    this.#session = undefined;
  }

  #becomeReady(): void {
    this.#cancelTimers();
    const { address, logger } = this.#options;
    if (this.#failed > 0) logger.info({ address }, 'gRPC connection works again');
    this.#failed = 0;
    this.#ready = true;
    this.#suspected = false;
  }

  #replace(session: ClientHttp2Session, delayMs?: number): void {
    if (this.#session !== session || this.#closed) return;
    this.#cancelTimers();
    this.#session = undefined;
    if (delayMs === undefined) this.open();
    else this.#cancelTimers = scheduleByTimer(delayMs, () => this.open());
  }
}
