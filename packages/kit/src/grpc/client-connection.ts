import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type BackoffOptions, backoffDelays } from '../backoff.ts';
import { FailureLog, type Logger } from '../logger.ts';
import { scheduleByTimer } from '../time.ts';
import type { WatchedTls } from '../tls.ts';
import { ClientSession } from './client-session.ts';

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
 * A connection that is replaced when it ends: at once after a GOAWAY, else after a delay.
 */
export class ClientConnection {
  readonly #options: ClientConnectionOptions;
  readonly #failures: FailureLog;
  readonly #delayAfter = backoffDelays(backoff);
  #session: ClientSession | undefined;
  /** Failures since the last connection that worked. */
  #failed = 0;
  /** The server has sent its settings. */
  #ready: boolean = false;
  /** A call got no answer in time, and the server has not answered a PING since. */
  #suspected: boolean = false;
  #used: boolean = false;
  #closed: boolean = false;
  #cancelTimer: () => void = () => undefined;

  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    const { logger } = options;
    this.#failures = new FailureLog({ logger, message: 'gRPC connection failed', level: 'warn' });
  }

  /**
   * The session if a call has a chance: once a connection has failed, only when the next one works.
   * Calls do not wait for a server that is down.
   */
  use(): ClientSession | undefined {
    const session = this.#session;
    if (session?.isOpen !== true || this.#suspected) return undefined;
    if (!this.#ready && this.#failed > 0) return undefined;
    this.#used = true;
    return session;
  }

  open(): void {
    const { address } = this.#options;
    const socket = this.#connect();
    socket.setNoDelay().unref();
    const session = new ClientSession(socket, {
      onAlive: () => {
        if (this.#session === session) this.#becomeReady();
      },
      // Without calls it is replaced after a delay: the server may end each connection.
      onGoaway: () => {
        if (this.#used) this.#replace(session);
      },
      onClose: (error) => {
        if (error !== undefined) this.#failures.log(error, { address });
        if (this.#session !== session) return;
        this.#failed += 1;
        this.#replace(session, this.#delayAfter(this.#failed));
      },
    });
    this.#session = session;
    this.#ready = false;
    this.#suspected = false;
    this.#used = false;
    this.#destroyUnlessAlive(session);
  }

  /**
   * Call when a call of the session got no answer in time: until the server answers a PING, the
   * connection is not used. Without effect if another session has replaced it.
   */
  suspect(session: ClientSession): void {
    if (session !== this.#session || !session.isOpen || this.#suspected) return;
    this.#suspected = true;
    // A connection that is not ready has a timer already.
    if (!this.#ready) return;
    session.ping();
    this.#destroyUnlessAlive(session);
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
    this.#cancelTimer();
    this.#session?.destroy();
    this.#session = undefined;
  }

  #connect(): Socket {
    const { address, tls } = this.#options;
    const { hostname, port } = new URL(`tcp://${address}`);
    const host = hostname.replace(/^\[|\]$/g, '');
    if (tls === undefined) return connect({ host, port: Number(port) });
    const { cert, key, ca } = tls.current();
    const socket = connectTls({
      ...{ host, port: Number(port), ALPNProtocols: ['h2'] },
      ...(isIP(host) === 0 && { servername: host }),
      ...(cert && { cert }),
      ...(key && { key }),
      ...(ca && { ca }),
    });
    return socket.once('secureConnect', () => {
      if (socket.alpnProtocol !== 'h2') socket.destroy(new Error(`${address} does not offer HTTP/2`));
    });
  }

  #destroyUnlessAlive(session: ClientSession): void {
    const message = `${this.#options.address} did not answer within ${patienceMs} ms`;
    this.#cancelTimer = scheduleByTimer(patienceMs, () => session.destroy(new Error(message)));
  }

  #becomeReady(): void {
    this.#cancelTimer();
    const { address, logger } = this.#options;
    if (this.#failed > 0) logger.info({ address }, 'gRPC connection works again');
    this.#failed = 0;
    this.#ready = true;
    this.#suspected = false;
  }

  #replace(session: ClientSession, delayMs?: number): void {
    if (this.#session !== session || this.#closed) return;
    this.#cancelTimer();
    this.#session = undefined;
    if (delayMs === undefined) this.open();
    else this.#cancelTimer = scheduleByTimer(delayMs, () => this.open());
  }
}
