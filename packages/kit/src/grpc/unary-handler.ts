/** What a handler may know of the call besides its message. */
export interface CallContext {
  /** The first value of a request header (lower-case name), for trace propagation. */
  readonly header: (name: string) => string | undefined;
}

/**
 * Answers one unary call: message bytes in, message bytes out. Knows nothing of the transport, so that another
 * HTTP/2 engine can take the place of today's. An AppError becomes its gRPC status and message. Answers at once where nothing
 * has to be waited for: a promise costs a call as short as these some of its time.
 */
export type UnaryHandler = (request: Uint8Array, context: CallContext) => Uint8Array | Promise<Uint8Array>;
