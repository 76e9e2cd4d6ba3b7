import { grpcStatus } from '../errors.ts';
import { monotonicNow, startDeadline } from '../time.ts';
import { ClientConnection, type ClientConnectionOptions } from './client-connection.ts';
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

/** Behind a Service of Kubernetes, each may reach another replica. */
const connectionCount = 2;
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
  readonly #address: string;
  readonly #connections: readonly ClientConnection[];
  readonly #unfollowTls: (() => void) | undefined;
  #next = 0;
  #inFlight = 0;

  constructor(options: ClientConnectionOptions) {
    this.#address = options.address;
    this.#connections = Array.from({ length: connectionCount }, () => new ClientConnection(options));
    this.#unfollowTls = options.tls?.onChange(() => {
      for (const connection of this.#connections) connection.renew();
    });
  }

  /** Connects without waiting for it. */
  start(): void {
    for (const connection of this.#connections) connection.open();
  }

  close(): void {
    this.#unfollowTls?.();
    for (const connection of this.#connections) connection.close();
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
    const request = {
      ...{ path, authority: this.#address, body: withPrefix(message) },
      headers: [
        ['grpc-timeout', `${Math.max(1, Math.ceil(options.timeoutMs))}m`],
        ...Object.entries(options.headers ?? {}),
      ] as const,
    };
    const endMs = monotonicNow() + options.timeoutMs;
    this.#inFlight += 1;
    try {
      const reply = await this.#tryCall(request, options.timeoutMs);
      if (reply !== undefined) return reply;
      // The server has not processed it; on another connection, it may.
      const timeLeftMs = Math.max(0, endMs - monotonicNow());
      return (await this.#tryCall(request, timeLeftMs)) ?? failUnavailable('the server refused the call');
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** Resolves with undefined if the server refused the call without processing it. */
  #tryCall(
    request: Parameters<ClientSession['send']>[1],
    timeoutMs: number,
  ): Promise<Uint8Array | undefined> {
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
      const cancelDeadline = startDeadline(timeoutMs, () => {
        cancelCall();
        connection.suspect(session);
        const message = `no reply within ${Math.round(timeoutMs)} ms`;
        reject(new UnaryCallError(grpcStatus.deadlineExceeded, message));
      });
      const cancelCall = session.send(call, request);
    });
  }

  #choose(): { readonly connection: ClientConnection; readonly session: ClientSession } {
    for (let tried = 0; tried < connectionCount; tried += 1) {
      this.#next = (this.#next + 1) % connectionCount;
      const connection = this.#connections[this.#next];
      const session = connection?.use();
      if (connection !== undefined && session !== undefined) return { connection, session };
    }
    return failUnavailable(`${this.#address} cannot be reached`);
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
