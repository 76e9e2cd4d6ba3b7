/** Codes of certificates that are not accepted and of handshakes that fail (Node and OpenSSL, Bun). */
const tlsCode =
  /^(?:ERR_SSL_|ERR_TLS_(?!HANDSHAKE_TIMEOUT)|CERT_|CRL_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|ERROR_IN_CERT|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|EPROTO$)/;

/** Deno has no codes; this its messages say. */
const tlsMessage = /invalid peer certificate|received fatal alert/;

/** How deep causes are followed; fetch in Node nests two. */
const maxCauses = 5;

/** Whether an error is a failure of TLS: it comes again with every attempt, and trying again may only help an attacker. */
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
 * Codes of system errors (Node, Bun) after which no byte of the request can have reached the server: the name had
 * no address, or no connection came about. A reset (`ECONNRESET`) is not among them: the request may have been read.
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

/** Deno gives no codes; this its messages say of the same. A URL cannot say it: it has no blanks. */
const neverConnectedInDeno = ': client error (Connect): ';

/** Whether an error shows that the request certainly never reached the server. Unknown errors do not show it. */
export function certainlyNeverReachedServer(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < maxCauses && current instanceof Error; depth += 1) {
    if (current instanceof AggregateError && current.errors.length > 0) {
      // Happy eyeballs: every address was tried, and each attempt has an error of its own.
      return current.errors.every(certainlyNeverReachedServer);
    }
    if ('code' in current && neverConnected.has(current.code)) return true;
    if (current.message.includes(neverConnectedInDeno)) return true;
    current = current.cause;
  }
  return false;
}
