import { monotonicNow } from '@tollgate/kit/time';
import { backendFailure } from '../errors.ts';

interface Store<Hit> {
  add(hits: readonly Hit[]): Promise<readonly number[]>;
  read(hits: readonly Hit[]): Promise<readonly number[]>;
}

export interface CircuitBreakerOptions {
  /** Consecutive failures that open the circuit. */
  readonly failures: number;
  /** Delay of the n-th consecutive probe, milliseconds. */
  readonly delayMs: (attempt: number) => number;
  /** A monotonic clock in milliseconds. */
  readonly nowMs?: () => number;
}

export interface CircuitBreakerHooks {
  readonly onOpen: (error: Error, retryMs: number) => void;
  readonly onClose: () => void;
  /** Called for each request that fails without the store. */
  readonly onReject: () => void;
}

/**
 * Stops calling a store that fails: while the circuit is open, requests fail at once. After a delay
 * the next request is a probe. Its success closes the circuit, its failure doubles the delay.
 */
export class CircuitBreaker<Hit> implements Store<Hit> {
  readonly #store: Store<Hit>;
  readonly #options: CircuitBreakerOptions;
  readonly #hooks: CircuitBreakerHooks;
  readonly #nowMs: () => number;
  /** Consecutive failures while the circuit is closed. */
  #failures = 0;
  /** Times that the circuit opened since it was closed; 0 while it is closed. */
  #openings = 0;
  #probeAtMs = 0;
  #isProbing: boolean = false;
  #rejection: Error | undefined;
  /**
   * Counts changes of the state: a result that was requested before the last one says nothing about
   * the store now.
   */
  #changes = 0;
  #isRetired: boolean = false;

  constructor(store: Store<Hit>, options: CircuitBreakerOptions, hooks: CircuitBreakerHooks) {
    this.#store = store;
    this.#options = options;
    this.#hooks = hooks;
    this.#nowMs = options.nowMs ?? monotonicNow;
  }

  add(hits: readonly Hit[]): Promise<readonly number[]> {
    return this.#send('add', hits);
  }

  read(hits: readonly Hit[]): Promise<readonly number[]> {
    return this.#send('read', hits);
  }

  /** The same for another call of the store. */
  guard<Result>(call: () => Promise<Result>): Promise<Result> {
    return this.#reject() ?? this.#watch(call());
  }

  /** Closes the circuit, because the store is another one now. */
  reset(): void {
    this.#failures = 0;
    if (this.#openings > 0) this.#close();
    this.#changes += 1;
  }

  /** Closes the circuit for good: the store is not in use any more. */
  retire(): void {
    this.reset();
    this.#isRetired = true;
  }

  #send(method: 'add' | 'read', hits: readonly Hit[]): Promise<readonly number[]> {
    // Without hits the store is not called, so that the result says nothing about it.
    if (hits.length === 0) return this.#store[method](hits);
    return this.#reject() ?? this.#watch(this.#store[method](hits));
  }

  /** A rejected promise while the circuit is open, unless the call is to be a probe. */
  #reject(): Promise<never> | undefined {
    if (this.#openings === 0) return undefined;
    if (this.#isProbing || this.#nowMs() < this.#probeAtMs) {
      this.#hooks.onReject();
      return Promise.reject(this.#rejection ?? backendFailure('the circuit breaker is open'));
    }
    this.#isProbing = true;
    return undefined;
  }

  #watch<Result>(result: Promise<Result>): Promise<Result> {
    const changes = this.#changes;
    result.then(
      () => this.#onSuccess(changes),
      (error: Error) => this.#onFailure(changes, error),
    );
    return result;
  }

  #onSuccess(changes: number): void {
    if (changes !== this.#changes) return;
    this.#failures = 0;
    if (this.#openings > 0) this.#close();
  }

  #onFailure(changes: number, error: Error): void {
    if (changes !== this.#changes || this.#isRetired) return;
    this.#failures += 1;
    if (this.#openings > 0 || this.#failures >= this.#options.failures) this.#open(error);
  }

  #open(error: Error): void {
    this.#changes += 1;
    this.#openings += 1;
    this.#isProbing = false;
    const retryMs = this.#options.delayMs(this.#openings);
    this.#probeAtMs = this.#nowMs() + retryMs;
    this.#rejection = backendFailure(`the circuit breaker is open: ${error.message}`, error);
    if (this.#openings === 1) this.#hooks.onOpen(error, retryMs);
  }

  #close(): void {
    this.#changes += 1;
    this.#openings = 0;
    this.#failures = 0;
    this.#isProbing = false;
    this.#rejection = undefined;
    this.#hooks.onClose();
  }
}
