import type { ApiClient } from './client.ts';
import { ApiError } from './errors.ts';

interface RecoveryOptions {
  readonly api: ApiClient;
  readonly random: () => number;
  readonly sleep: (ms: number, options: { readonly signal: AbortSignal }) => Promise<unknown>;
}

/** Shortest time between two probes; up to twice as long, so that replicas call at random times. */
const probeMs = 1_000;

const probeTimeoutMs = 2_000;

/**
 * Delays in a row that may end early although no probe has failed: a proxy may break every watch of
 * a healthy server.
 */
const maxTrusted = 5;

/**
 * Waits after a failed call. While the API server is down, a cheap probe finds out when it is back,
 * so that long delays do not outlast the outage: replicas call again within two seconds of its
 * return, at random times. A server that is up and refuses is left alone for the whole delay.
 */
export class RecoveryDelay {
  readonly #options: RecoveryOptions;
  #trusted = 0;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** The API server works again. */
  reset(): void {
    this.#trusted = 0;
  }

  /** Rejects when the signal aborts. */
  async wait(delayMs: number, { error, signal }: { error: unknown; signal: AbortSignal }): Promise<void> {
    const { random, sleep } = this.#options;
    let isDown = isOutage(error) && this.#trusted < maxTrusted;
    let hasFailed = false;
    let leftMs = delayMs;
    while (leftMs > probeMs && mayEnd(error)) {
      const stepMs = Math.min(leftMs, probeMs * (1 + random()));
      await sleep(stepMs, { signal });
      leftMs -= stepMs;
      const isUp = await this.#probe(signal);
      if (isUp && isDown) {
        if (!hasFailed) this.#trusted += 1;
        return;
      }
      if (isUp) break;
      isDown = true;
      hasFailed = true;
    }
    if (leftMs > 0) await sleep(leftMs, { signal });
  }

  /** Every authenticated client may read /readyz. */
  async #probe(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.api.probe('/readyz', { timeoutMs: probeTimeoutMs, signal });
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }
}

/** The server did not answer, or not by itself. */
function isOutage(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500;
}

/** Not what the server asked to wait. */
function mayEnd(error: unknown): boolean {
  return !(error instanceof ApiError) || error.retryAfterMs === 0;
}
