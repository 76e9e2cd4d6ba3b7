/** Codes of rejected certificates and failed handshakes (Node, OpenSSL, Bun). */
const tlsCode =
  /^(?:ERR_SSL_|ERR_TLS_(?!HANDSHAKE_TIMEOUT)|CERT_|CRL_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|ERROR_IN_CERT|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|EPROTO$)/;

/** Messages of Deno, which has no codes. */
const tlsMessage = /invalid peer certificate|received fatal alert/;

/** Depth to which causes are followed; fetch in Node nests two. */
const maxCauses = 5;

/** Whether an error is a TLS failure, which would occur again. */
export function isTlsFailure(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < maxCauses && current instanceof Error; depth += 1) {
    if (current instanceof AggregateError && current.errors.some(isTlsFailure)) return true;
    if ('code' in current && typeof current.code === 'string' && tlsCode.test(current.code)) return true;
    if (tlsMessage.test(current.message)) return true;
    current = current.cause;
  }
  return false;
}

/**
 * Error codes (Node, Bun) that mean that no byte of the request reached the server: the name was
 * not resolved, or no connection was established. `ECONNRESET` is not among them.
 */
const neverConnected: ReadonlySet<unknown> = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
]);

/** A message of Deno, which has no codes. URLs have no blanks. */
const neverConnectedInDeno = ': client error (Connect): ';

/** Whether an error proves that the request did not reach the server. */
export function certainlyNeverReachedServer(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < maxCauses && current instanceof Error; depth += 1) {
    if (current instanceof AggregateError && current.errors.length > 0) {
      // Happy eyeballs: one error for each address.
      return current.errors.every(certainlyNeverReachedServer);
    }
    if ('code' in current && neverConnected.has(current.code)) return true;
    if (current.message.includes(neverConnectedInDeno)) return true;
    current = current.cause;
  }
  return false;
}
