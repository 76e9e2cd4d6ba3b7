/** Origins whose nonces are kept; the one heard of longest ago goes first. */
const MAXIMUM_ORIGINS = 100;

/** Longer nonces are not remembered: they travel in every request. */
const MAXIMUM_NONCE_LENGTH = 1024;

/**
 * The last nonce of each origin; authorization server and APIs each have their own.
 *
 * @see RFC 9449 §8 https://www.rfc-editor.org/rfc/rfc9449#section-8
 */
export interface NonceMemory {
  get(origin: string): string | undefined;
  /** Takes what a response's `DPoP-Nonce` header says, when it is there. */
  learn(origin: string, nonce: string | null): void;
}

/** Makes an empty, bounded memory of nonces. */
export function createNonceMemory(): NonceMemory {
  const nonces = new Map<string, string>();
  return {
    get: (origin) => nonces.get(origin),
    learn(origin, nonce) {
      if (nonce === null || nonce === '' || nonce.length > MAXIMUM_NONCE_LENGTH) return;
      nonces.delete(origin);
      nonces.set(origin, nonce);
      const [oldest] = nonces.keys();
      if (nonces.size > MAXIMUM_ORIGINS && oldest !== undefined) nonces.delete(oldest);
    },
  };
}
