/** Status codes of gRPC. */
export const Code = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** The status of a call without a message. */
export class GrpcStatus {
  readonly code: number;
  readonly message: string;

  constructor(code: number, message: string) {
    this.code = code;
    this.message = message;
  }
}

/** Maximum length of a status message: header lists are limited. */
const maxMessageChars = 1000;

/**
 * Percent-encodes a message for `grpc-message`: UTF-8, everything but printable ASCII and `%`.
 *
 * @see https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses
 */
export function encodeMessage(message: string): string {
  if (/^[ -$&-~]*$/.test(message) && message.length <= maxMessageChars) return message;
  let encoded = '';
  for (const byte of Buffer.from(message.slice(0, maxMessageChars).toWellFormed())) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}
