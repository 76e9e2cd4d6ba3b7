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
