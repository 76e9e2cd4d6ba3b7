import { type LookupAddress, lookup } from 'node:dns';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type BackoffOptions, backoffDelays } from '../backoff.ts';
import { FailureLog, type Logger } from '../logger.ts';
import { scheduleByTimer, startDeadline } from '../time.ts';
import type { WatchedTls } from '../tls.ts';
import { ClientSession } from './client-session.ts';

/** Resolves a name to all of its addresses, as `dns.lookup` does with `all`. */
type ResolveName = (name: string, done: (error: Error | null, addresses: LookupAddress[]) => void) => void;

/** Options of connections to one server. */
export interface ClientConnectionOptions {
  /** `host:port`, an IPv6 address in brackets. */
  readonly address: string;
  /** Plaintext without it. New material applies to new connections. */
  readonly tls?: WatchedTls | undefined;
  readonly logger: Logger;
  /** Default: the resolver of the system. */
  readonly resolveName?: ResolveName;
}

/** State that the connections of a client share. */
export interface ConnectionGroup {
  /** IP addresses in use, which other connections avoid while the name has more. */
  readonly addresses: Map<ClientConnection, string>;
  /** The server accepts calls. */
  readonly onReady: (connection: ClientConnection) => void;
}

/** Time until the server must have sent its settings. */
const connectTimeoutMs = 5_000;
/** Time for the answer to a PING. Calls may wait for their timeout meanwhile. */
const pingTimeoutMs = 1_000;
/** A connection of this age has worked, also without calls. */
const provenAfterMs = 1_000;

const backoff: BackoffOptions = { initialMs: 50, maxMs: 2_000, jitter: 0.2 };

const resolveBySystem: ResolveName = (name, done) =>
  lookup(name, { all: true }, (error, addresses) => done(error, addresses));

/**
 * A connection that is replaced when it ends: at once if it worked and the server ended it, else
 * after a delay.
 */
export class ClientConnection {
  readonly #options: ClientConnectionOptions;
  readonly #group: ConnectionGroup;
  readonly #failures: FailureLog;
  readonly #delayAfter = backoffDelays(backoff);
  #session: ClientSession | undefined;
  /** Failures since the last connection that worked. */
  #failed = 0;
  /** The server has sent its settings. */
  #ready: boolean = false;
  #proven: boolean = false;
  /** A call got no answer in time, and the server has not answered a PING since. */
  #suspected: boolean = false;
  #closed: boolean = false;
  #cancelTimer: () => void = () => undefined;

  constructor(options: ClientConnectionOptions, group: ConnectionGroup) {
    this.#options = options;
    this.#group = group;
    const { logger } = options;
    this.#failures = new FailureLog({ logger, message: 'gRPC connection failed', level: 'warn' });
  }

  /** The session of a connection that works, as far as is known. */
  get working(): ClientSession | undefined {
    const session = this.#session;
    return session?.isOpen === true && this.#ready && !this.#suspected ? session : undefined;
  }

  /**
   * The session if a call has a chance: while the first connection is made, but once one has
   * failed, only when the next one works. Calls do not wait for a server that is down.
   */
  get usable(): ClientSession | undefined {
    const session = this.#session;
    if (session?.isOpen !== true) return undefined;
    return this.#ready || (this.#failed === 0 && !this.#suspected) ? session : undefined;
  }

  open(): void {
    const socket = this.#connect();
    socket.setNoDelay().unref();
    const session = new ClientSession(socket, {
      onAlive: () => {
        if (this.#session === session) this.#becomeReady();
      },
      onGoaway: () => this.#onEnd(session, undefined),
      onClose: (error) => this.#onEnd(session, error),
    });
    this.#session = session;
    this.#ready = false;
    this.#proven = false;
    this.#suspected = false;
    this.#destroyUnlessAlive(session, connectTimeoutMs);
  }

  /**
   * Call when the session received nothing while a call missed its deadline: until the server
   * answers a PING, other connections are preferred. Without effect if another session has
   * replaced it.
   */
  suspect(session: ClientSession): void {
    if (session !== this.#session || !session.isOpen || this.#suspected) return;
    this.#suspected = true;
    // A connection that is not ready has a timer already.
    if (!this.#ready) return;
    session.ping();
    this.#destroyUnlessAlive(session, pingTimeoutMs);
  }

  /** Replaces the connection; calls in flight are completed. */
  renew(): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#replace(session);
    session.close();
  }

  /** Ends the connection after its calls. */
  retire(): void {
    const session = this.#session;
    this.#end();
    session?.close();
  }

  close(): void {
    const session = this.#session;
    this.#end();
    session?.destroy();
  }

  #end(): void {
    this.#closed = true;
    this.#cancelTimer();
    this.#session = undefined;
    this.#group.addresses.delete(this);
  }

  #connect(): Socket {
    const { address, tls } = this.#options;
    const colon = address.lastIndexOf(':');
    const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
    const target = {
      ...{ host, port: Number(address.slice(colon + 1)) },
      ...{ lookup: this.#lookup, autoSelectFamily: true },
    };
    if (tls === undefined) return this.#noteAddress(connect(target));
    const { cert, key, ca } = tls.current();
    const socket = connectTls({
      ...target,
      ALPNProtocols: ['h2'],
      ...(isIP(host) === 0 && { servername: host }),
      ...(cert && { cert }),
      ...(key && { key }),
      ...(ca && { ca }),
    });
    this.#noteAddress(socket);
    return socket.once('secureConnect', () => {
      if (socket.alpnProtocol !== 'h2') socket.destroy(new Error(`${address} does not offer HTTP/2`));
    });
  }

  /** Puts a random address first that no other connection uses; Node tries the others after it. */
  readonly #lookup: LookupFunction = (name, _options, done) => {
    const resolveName = this.#options.resolveName ?? resolveBySystem;
    resolveName(name, (error, addresses) => {
      const used = new Set([...this.#group.addresses].flatMap(([one, ip]) => (one === this ? [] : [ip])));
      const free = addresses.filter(({ address }) => !used.has(address));
      const choice = free.length > 0 ? free : addresses;
      const first = choice[Math.floor(Math.random() * choice.length)];
      if (error !== null || first === undefined) {
        done(error ?? new Error(`${name} has no address`), []);
        return;
      }
      if (!this.#closed) this.#group.addresses.set(this, first.address);
      done(null, [first, ...addresses.filter((other) => other !== first)]);
    });
  };

  #noteAddress(socket: Socket): Socket {
    return socket.once('connect', () => {
      const { remoteAddress } = socket;
      if (!this.#closed && remoteAddress !== undefined) this.#group.addresses.set(this, remoteAddress);
    });
  }

  #destroyUnlessAlive(session: ClientSession, timeoutMs: number): void {
    const message = `${this.#options.address} did not answer within ${timeoutMs} ms`;
    this.#cancelTimer();
    this.#cancelTimer = startDeadline(timeoutMs, () => session.destroy(new Error(message)));
  }

  #becomeReady(): void {
    this.#ready = true;
    this.#suspected = false;
    this.#cancelTimer();
    this.#cancelTimer = scheduleByTimer(provenAfterMs, () => this.#prove());
    this.#group.onReady(this);
  }

  /** It is proven no earlier: a server may accept each connection and end it at once. */
  #prove(): void {
    const { address, logger } = this.#options;
    if (this.#failed > 0) logger.info({ address }, 'gRPC connection works again');
    this.#failed = 0;
    this.#proven = true;
  }

  /** The session got a GOAWAY, or is closed. */
  #onEnd(session: ClientSession, error: Error | undefined): void {
    const isCurrent = this.#session === session;
    if (isCurrent && session.hasAnswered) this.#prove();
    const reason =
      error ??
      (isCurrent && !this.#proven ? new Error('the server ended the connection at once') : undefined);
    const { address } = this.#options;
    if (reason !== undefined) this.#failures.log(reason, { address });
    if (!isCurrent) return;
    if (reason === undefined) {
      this.#replace(session);
      return;
    }
    this.#failed += 1;
    this.#replace(session, this.#delayAfter(this.#failed));
  }

  #replace(session: ClientSession, delayMs?: number): void {
    if (this.#session !== session || this.#closed) return;
    this.#cancelTimer();
    this.#session = undefined;
    if (delayMs === undefined) this.open();
    else this.#cancelTimer = scheduleByTimer(delayMs, () => this.open());
  }
}
