import { grpcStatus } from '../errors.ts';
import { monotonicNow, scheduleByTimer, startDeadline } from '../time.ts';
import { ClientConnection, type ClientConnectionOptions, type ConnectionGroup } from './client-connection.ts';
import type { ClientCall, ClientSession } from './client-session.ts';

/** A call that failed: the status of the server, or UNAVAILABLE, or DEADLINE_EXCEEDED. */
class UnaryCallError extends Error {
  override readonly name = 'UnaryCallError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface UnaryCallOptions {
  readonly timeoutMs: number;
  /** Further headers, such as those of a trace; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface UnaryClientOptions extends ClientConnectionOptions {
  /** Interval at which the oldest connection is replaced. Default 2.5 min. */
  readonly renewalMs?: number;
  /** Timers of the calls. */
  readonly startDeadline?: typeof startDeadline;
}

/** They go to different addresses of the name; behind a Service, each may reach another replica. */
const connectionCount = 2;
/** New replicas get calls after twice that time. */
const defaultRenewalMs = 150_000;
/** With less time left the answer would be late. */
const minTimeoutMs = 1;
/** Calls in flight, which hold their requests in memory while a server is slow. */
const maxInFlight = 1_000;
/** More does not fit the initial windows of HTTP/2. */
const maxMessageBytes = 60_000;
/** The flag of compression, and the length of the message. */
const prefixBytes = 5;

/**
 * Unary gRPC calls of a hot path, with the frames of packages/grpc-server. Calls fail at once while
 * the server cannot be reached.
 */
export class UnaryClient {
  readonly #options: UnaryClientOptions;
  readonly #group: ConnectionGroup;
  readonly #unfollowTls: (() => void) | undefined;
  /** The oldest is the first. */
  #connections: readonly ClientConnection[];
  /** Takes the place of the oldest connection once it is ready. */
  #successor: ClientConnection | undefined;
  #cancelRenewal: () => void = () => undefined;
  #next = 0;
  #inFlight = 0;

  constructor(options: UnaryClientOptions) {
    this.#options = options;
    this.#group = {
      addresses: new Map(),
      onReady: (connection) => {
        if (connection === this.#successor) this.#succeed(connection);
      },
    };
    this.#connections = Array.from({ length: connectionCount }, () => this.#createConnection());
    this.#unfollowTls = options.tls?.onChange(() => {
      for (const connection of this.#connections) connection.renew();
      this.#successor?.renew();
    });
  }

  /** Connects without waiting for it. */
  start(): void {
    for (const connection of this.#connections) connection.open();
    this.#renewLater();
  }

  close(): void {
    this.#cancelRenewal();
    this.#unfollowTls?.();
    this.#successor?.close();
    for (const connection of this.#connections) connection.close();
  }

  #createConnection(): ClientConnection {
    return new ClientConnection(this.#options, this.#group);
  }

  #renewLater(): void {
    this.#cancelRenewal = scheduleByTimer(this.#options.renewalMs ?? defaultRenewalMs, () => {
      // The last one has not been ready since.
      this.#successor?.close();
      const [oldest] = this.#connections;
      if (oldest !== undefined) this.#group.addresses.delete(oldest);
      this.#successor = this.#createConnection();
      this.#successor.open();
      this.#renewLater();
    });
  }

  #succeed(successor: ClientConnection): void {
    const [oldest, ...others] = this.#connections;
    this.#connections = [...others, successor];
    this.#successor = undefined;
    oldest?.retire();
  }

  /** Rejects with an error that has the `status`, within the timeout. */
  async call(path: string, message: Uint8Array, options: UnaryCallOptions): Promise<Uint8Array> {
    if (message.length > maxMessageBytes)
      throw new UnaryCallError(
        grpcStatus.resourceExhausted,
        `a message of ${message.length} bytes is too large`,
      );
    if (this.#inFlight >= maxInFlight)
      throw new UnaryCallError(grpcStatus.unavailable, `${maxInFlight} calls are in flight`);
    const endMs = monotonicNow() + options.timeoutMs;
    const body = withPrefix(message);
    const authority = this.#options.address;
    const more = Object.entries(options.headers ?? {});
    // The second attempt has less time.
    const tryCall = (timeoutMs: number) => {
      const headers = [['grpc-timeout', `${Math.ceil(timeoutMs)}m`] as const, ...more];
      return this.#tryCall({ path, authority, body, headers }, timeoutMs);
    };
    this.#inFlight += 1;
    try {
      const reply = await tryCall(options.timeoutMs);
      if (reply !== undefined) return reply;
      // The server has not processed it; on another connection, it may.
      return (await tryCall(endMs - monotonicNow())) ?? failUnavailable('the server refused the call');
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** Resolves with undefined if the server refused the call without processing it. */
  #tryCall(
    request: Parameters<ClientSession['send']>[1],
    timeoutMs: number,
  ): Promise<Uint8Array | undefined> {
    if (timeoutMs < minTimeoutMs)
      throw new UnaryCallError(grpcStatus.deadlineExceeded, 'no time is left for the call');
    const { connection, session } = this.#choose();
    return new Promise((resolve, reject) => {
      const call: ClientCall = {
        ...{ headers: new Map(), chunks: [] },
        onEnd() {
          cancelDeadline();
          const message = readMessage(call);
          if (message instanceof UnaryCallError) reject(message);
          else resolve(message);
        },
        onReset({ refused, message }) {
          cancelDeadline();
          if (refused) resolve(undefined);
          else reject(new UnaryCallError(grpcStatus.unavailable, message));
        },
      };
      const { reads } = session;
      const cancelDeadline = (this.#options.startDeadline ?? startDeadline)(timeoutMs, () => {
        cancelCall();
        // Other calls may be answered, such as those with another shard of a store.
        if (session.reads === reads) connection.suspect(session);
        const message = `no reply within ${Math.round(timeoutMs)} ms`;
        reject(new UnaryCallError(grpcStatus.deadlineExceeded, message));
      });
      const cancelCall = session.send(call, request);
    });
  }

  /** Prefers connections that work, as far as is known. */
  #choose(): { readonly connection: ClientConnection; readonly session: ClientSession } {
    for (const state of ['working', 'usable'] as const) {
      for (let tried = 0; tried < connectionCount; tried += 1) {
        this.#next = (this.#next + 1) % connectionCount;
        const connection = this.#connections[this.#next];
        const session = connection?.[state];
        if (connection !== undefined && session !== undefined) return { connection, session };
      }
    }
    return failUnavailable(`${this.#options.address} cannot be reached`);
  }
}

function failUnavailable(message: string): never {
  throw new UnaryCallError(grpcStatus.unavailable, message);
}

function withPrefix(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(prefixBytes + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, prefixBytes);
  return bytes;
}

/** @see https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
function readMessage({ headers, chunks }: ClientCall): Uint8Array | UnaryCallError {
  const httpStatus = headers.get(':status');
  const status = headers.get('grpc-status');
  if (status === undefined)
    return new UnaryCallError(
      grpcStatus.unavailable,
      `the server answered without a gRPC status (HTTP status ${httpStatus})`,
    );
  if (Number(status) !== grpcStatus.ok)
    return new UnaryCallError(Number(status), decodeText(headers.get('grpc-message')));
  const [first = Buffer.alloc(0)] = chunks;
  const body = chunks.length > 1 ? Buffer.concat(chunks) : first;
  const isWhole =
    body.length >= prefixBytes && body[0] === 0 && body.readUInt32BE(1) === body.length - prefixBytes;
  return isWhole
    ? body.subarray(prefixBytes)
    : new UnaryCallError(grpcStatus.internal, 'the reply is not one message without compression');
}

/** Percent-encoded by the server. */
function decodeText(message = ''): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}
