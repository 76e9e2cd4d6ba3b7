/** What a handler may know of the call besides its message. */
export interface CallContext {
  /** The first value of a request header (lower-case name), for trace propagation. */
  readonly header: (name: string) => string | undefined;
}

/**
 * Answers one unary call: message bytes in, message bytes out. Knows nothing of the transport, so that another
 * HTTP/2 engine can take the place of today's. An AppError becomes its gRPC status and message.
 */
export type UnaryHandler = (request: Uint8Array, context: CallContext) => Promise<Uint8Array>;
