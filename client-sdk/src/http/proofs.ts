/**
 * Responses to requests that carried a DPoP proof, as `fetch` returned them and as they were read.
 */
const proven = new WeakSet<object>();

/** Records that a response answers a request with a DPoP proof. */
export function markProven(response: object): void {
  proven.add(response);
}

/**
 * Whether a response answers a request with a DPoP proof, so that its token must be bound to the
 * key.
 */
export function isProven(response: object): boolean {
  return proven.has(response);
}

/** The JWS algorithms of `fetch` functions that send DPoP proofs. */
const algorithms = new WeakMap<object, string>();

/** Records the algorithm of the proofs that a `fetch` sends. */
export function recordProofAlgorithm(fetch: object, algorithm: string): void {
  algorithms.set(fetch, algorithm);
}

/** The algorithm of the proofs that a `fetch` sends; undefined if it sends none, or is wrapped. */
export function proofAlgorithm(fetch: object): string | undefined {
  return algorithms.get(fetch);
}
