import { monotonicNow } from '@tollgate/kit/time';
import { backendFailure } from '../errors.ts';

export interface CircuitBreakerOptions {
  /** Consecutive failed exchanges that open the circuit. */
  readonly failures: number;
  /** Delay of the n-th consecutive probe, milliseconds. */
  readonly delayMs: (attempt: number) => number;
  /** A monotonic clock in milliseconds. */
  readonly nowMs?: () => number;
}

export interface CircuitBreakerHooks {
  readonly onOpen: (error: Error, retryMs: number) => void;
  readonly onClose: () => void;
  /** Called for each request that fails without the server. */
  readonly onReject: () => void;
}

/**
 * Stops calling a server that fails: while the circuit is open, requests fail at once. After a
 * delay the batch of the next request is a probe. Its success closes the circuit, its failure
 * doubles the delay. Batches count, not requests: one of them may have hundreds, which fail
 * together.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  readonly #hooks: CircuitBreakerHooks;
  readonly #nowMs: () => number;
  /** Consecutive failures while the circuit is closed. */
  #failures = 0;
  /** Times that the circuit opened since it was closed; 0 while it is closed. */
  #openings = 0;
  #probeAtMs = 0;
  /** That a request was let through while the circuit is open, and that its batch was sent. */
  #probe: 'none' | 'admitted' | 'sent' = 'none';
  #rejection: Error | undefined;
  /**
   * Counts changes of the state: a batch that was sent before the last one says nothing about the
   * server now.
   */
  #changes = 0;
  #isRetired: boolean = false;

  constructor(options: CircuitBreakerOptions, hooks: CircuitBreakerHooks) {
    this.#options = options;
    this.#hooks = hooks;
    this.#nowMs = options.nowMs ?? monotonicNow;
  }

  /** Why a request fails without the server; undefined when it joins the next batch. */
  reject(): Error | undefined {
    if (this.#openings === 0) return undefined;
    if (this.#probe !== 'none' || this.#nowMs() < this.#probeAtMs) {
      this.#hooks.onReject();
      return this.#rejection;
    }
    this.#probe = 'admitted';
    return undefined;
  }

  /** Called before a batch is sent. Returns what `end` needs; undefined when it does not count. */
  begin(): number | undefined {
    if (this.#openings > 0) {
      if (this.#probe !== 'admitted') return undefined;
      this.#probe = 'sent';
    }
    return this.#changes;
  }

  /** Called once for each batch, with the error of the server or of the way to it. */
  end(begun: number | undefined, failure: Error | undefined): void {
    if (begun !== this.#changes || this.#isRetired) return;
    if (failure !== undefined) {
      this.#failures += 1;
      if (this.#openings > 0 || this.#failures >= this.#options.failures) this.#open(failure);
    } else {
      this.#failures = 0;
      if (this.#openings > 0) this.#close();
    }
  }

  /** Closes the circuit, because the server is another one now. */
  reset(): void {
    this.#failures = 0;
    if (this.#openings > 0) this.#close();
    this.#changes += 1;
  }

  /** Closes the circuit for good: the server is not in use any more. */
  retire(): void {
    this.reset();
    this.#isRetired = true;
  }

  #open(error: Error): void {
    this.#changes += 1;
    this.#openings += 1;
    this.#probe = 'none';
    const retryMs = this.#options.delayMs(this.#openings);
    this.#probeAtMs = this.#nowMs() + retryMs;
    this.#rejection = backendFailure(`the circuit breaker is open: ${error.message}`, error);
    if (this.#openings === 1) this.#hooks.onOpen(error, retryMs);
  }

  #close(): void {
    this.#changes += 1;
    this.#openings = 0;
    this.#failures = 0;
    this.#probe = 'none';
    this.#rejection = undefined;
    this.#hooks.onClose();
  }
}
