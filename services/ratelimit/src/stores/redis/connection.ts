import { createConnection, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type SecureContextOptions } from 'node:tls';
import type { RedisAddress, RedisCredentials } from '../../config/redis-target.ts';
import type { Login } from './credentials/login.ts';
import { Pipeline, type RedisReply, RedisReplyError, ReplyReader } from './resp.ts';

export interface RedisTls {
  readonly context: SecureContextOptions;
  /** False skips the check of the host name; the certificate chain is still verified. */
  readonly verifyHostname: boolean;
}

export interface RedisConnectionOptions {
  readonly address: RedisAddress;
  /** Replaces the credentials of the address. */
  readonly login?: Login | undefined;
  readonly tls?: RedisTls | undefined;
}

/** Called once when a connection is lost; without an error when the server closed it. */
export type OnLost = (error?: Error) => void;

/** Commands that were sent together, and the replies to them so far. */
interface Exchange {
  readonly replies: RedisReply[];
  readonly expected: number;
  readonly resolve: (replies: readonly RedisReply[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Idle time until TCP probes the server: firewalls and load balancers forget idle connections after
 * a minute or more, and the next hits would wait for KVSTORE_TIMEOUT.
 */
const keepAliveMs = 30_000;

const closedByServer = 'the server closed the connection';

/**
 * A connection to Redis, for one exchange at a time. It never reconnects and never resends: hits
 * must not be counted twice. It has no timeouts: callers close it when they have waited enough. On
 * connecting it sends nothing that a proxy for Redis, such as twemproxy, does not support.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  /** Names of the Lua scripts that were sent over this connection. */
  readonly knownScripts = new Set<string>();
  readonly #reader = new ReplyReader();
  /** The credentials that were sent last. */
  #sentCredentials: RedisCredentials | undefined;
  #socket: Socket | undefined;
  #exchange: Exchange | undefined;
  #isReady: boolean = false;
  #isClosed: boolean = false;
  #onLost: OnLost = () => undefined;
  /** Set once the connection is subscribed. */
  #onMessage: ((message: string) => void) | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
  }

  /** Connected, and not about to close. */
  get isUsable(): boolean {
    return this.#isReady && !this.#isClosed && this.#socket?.writable === true;
  }

  /** The credentials have changed since the connection logged in. */
  get isLoginOutdated(): boolean {
    return this.#getCredentials() !== this.#sentCredentials;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Connects, logs in and selects the database.
   *
   * @param onLost called when the connection is lost later, not after `close`.
   * @throws Error why that failed; the connection is closed then.
   */
  async connect(onLost: OnLost = () => undefined): Promise<void> {
    try {
      this.#socket = await this.#open();
      await this.logIn();
      await this.#selectDatabase();
      this.#isReady = true;
      this.#onLost = onLost;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * Logs in, also again. @throws RedisReplyError when Redis refuses it; a connection that has
   * logged in before stays so.
   */
  async logIn(): Promise<void> {
    const credentials = this.#getCredentials();
    this.#sentCredentials = credentials;
    if (credentials === undefined) return;
    const { username, password } = credentials;
    await (username === undefined ? this.call('AUTH', password) : this.call('AUTH', username, password));
  }

  /** Sends one command. @throws RedisReplyError when Redis refuses it. */
  async call(...words: readonly string[]): Promise<RedisReply> {
    const pipeline = new Pipeline();
    pipeline.command(...words);
    const [reply = null] = await this.send(pipeline);
    if (reply instanceof RedisReplyError) {
      throw reply;
    }
    return reply;
  }

  /** Subscribes to a channel; the connection takes no other command than PING then. */
  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    this.#onMessage = onMessage;
    await this.call('SUBSCRIBE', channel);
  }

  /**
   * Sends commands in one write. Resolves with as many replies; rejects when the connection ends
   * before.
   */
  send({ text, commandCount }: Pipeline): Promise<readonly RedisReply[]> {
    return new Promise((resolve, reject) => {
      if (this.#exchange !== undefined || this.#socket === undefined || this.#isClosed) {
        reject(new Error(this.#isClosed ? 'the connection is closed' : 'the connection is busy'));
        return;
      }
      this.#exchange = { replies: [], expected: commandCount, resolve, reject };
      // The encoding of plain ASCII that costs least.
      this.#socket.write(text, Buffer.byteLength(text) === text.length ? 'latin1' : 'utf8');
    });
  }

  /** Closes at once; the exchange in flight fails. Idempotent. */
  close(): void {
    this.#end(new Error('the connection was closed'));
  }

  #open(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const { socket, readyEvent } = openSocket(this.#options);
      // From now on closing the connection closes the socket.
      this.#socket = socket;
      if (this.#isClosed) {
        socket.destroy();
      }
      socket.setNoDelay();
      socket.setKeepAlive(true, keepAliveMs);
      const onEnd = (): void => {
        reject(new Error(closedByServer));
        this.#lose();
      };
      socket.once(readyEvent, () => resolve(socket));
      // More than one may follow: an aborted TLS handshake emits two.
      socket.on('error', (error) => {
        reject(error);
        this.#lose(error);
      });
      socket.on('end', onEnd);
      socket.on('close', onEnd);
      socket.on('data', (chunk: Buffer) => this.#read(chunk));
    });
  }

  #getCredentials(): RedisCredentials | undefined {
    const { address, login } = this.#options;
    return login?.current() ?? (address.kind === 'tcp' ? address.credentials : undefined);
  }

  async #selectDatabase(): Promise<void> {
    const { address } = this.#options;
    if (address.kind === 'tcp' && address.db !== undefined && address.db !== 0) {
      // A refused SELECT must end the attempt: counters would go to database 0.
      await this.call('SELECT', String(address.db));
    }
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader.read(chunk, (reply) => this.#onReply(reply));
    } catch (error) {
      this.#lose(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #onReply(reply: RedisReply): void {
    if (this.#onMessage !== undefined && Array.isArray(reply) && reply[0] === 'message') {
      this.#onMessage(String(reply[2]));
      return;
    }
    const exchange = this.#exchange;
    if (exchange === undefined) {
      throw new Error(
        reply instanceof RedisReplyError ? reply.message : 'the server sent a reply to no command',
      );
    }
    exchange.replies.push(reply);
    if (exchange.replies.length === exchange.expected) {
      this.#exchange = undefined;
      exchange.resolve(exchange.replies);
    }
  }

  #lose(error?: Error): void {
    if (!this.#isClosed) {
      this.#end(error ?? new Error(closedByServer));
      this.#onLost(error);
    }
  }

  #end(error: Error): void {
    this.#isClosed = true;
    this.#exchange?.reject(error);
    this.#exchange = undefined;
    this.#socket?.destroy();
  }
}

function openSocket(options: RedisConnectionOptions): {
  readonly socket: Socket;
  readonly readyEvent: 'connect' | 'secureConnect';
} {
  const { address } = options;
  if (address.kind === 'unix') {
    return { socket: createConnection(address.path), readyEvent: 'connect' };
  }
  const { host, port } = address;
  const tls = getTlsOptions(options, address.tls === true);
  return tls === undefined
    ? { socket: createConnection({ host, port }), readyEvent: 'connect' }
    : { socket: connectTls({ ...tls, host, port }), readyEvent: 'secureConnect' };
}

function getTlsOptions(
  { tls }: RedisConnectionOptions,
  requiredByUrl: boolean,
): ConnectionOptions | undefined {
  if (tls === undefined) {
    return requiredByUrl ? {} : undefined;
  }
  return { ...tls.context, ...(tls.verifyHostname ? {} : { checkServerIdentity: () => undefined }) };
}
