/** Each part gives up on the next one long before; a password may wait its turn to be hashed. */
const answerTimeoutMs = 20_000;

/** A `fetch` that gives up after 20 seconds, and as soon as the signal aborts. */
export function timedFetch(signal?: AbortSignal): typeof fetch {
  return (input, init) => {
    const signals = [AbortSignal.timeout(answerTimeoutMs), signal, init?.signal ?? undefined];
    return fetch(input, { ...init, signal: AbortSignal.any(signals.filter((each) => each !== undefined)) });
  };
}
