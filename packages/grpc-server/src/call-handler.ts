import type { Methods, Stream } from './call.ts';
import type { Replies } from './replies.ts';
import type { GrpcStatus } from './status.ts';

/** The parts of a connection that a call needs. */
export interface CallTarget {
  readonly host: {
    readonly methods: Methods;
    readonly toStatus: (error: unknown, path: string) => GrpcStatus;
  };
  readonly replies: Replies;
  /** Sends the reply of a unary call, unless it has ended meanwhile. */
  readonly reply: (stream: Stream, reply: Uint8Array | GrpcStatus) => void;
}

/** Calls the handler of a complete request. Errors become statuses. */
export function callHandler(stream: Stream, message: Uint8Array, { host, replies, reply }: CallTarget): void {
  const { unary, streaming } = host.methods;
  const handler = unary[stream.path];
  try {
    if (handler === undefined) {
      stream.streaming = true;
      streaming?.[stream.path]?.(message, replies.open(stream), stream);
      return;
    }
    const result = handler(message, stream);
    if (!(result instanceof Promise)) {
      reply(stream, result);
      return;
    }
    result.then(
      (value) => reply(stream, value),
      (error: unknown) => reply(stream, host.toStatus(error, stream.path)),
    );
  } catch (error) {
    reply(stream, host.toStatus(error, stream.path));
  }
}
