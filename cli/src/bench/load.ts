import { setTimeout as delay } from 'node:timers/promises';
import { Histogram } from './histogram.ts';

/** A connection to the target. */
export interface Connection {
  /** Sends a request. Returns what the response says, such as `200` or `OVER_LIMIT`. */
  send(): Promise<string>;
  close(): void;
}

export interface LoadOptions {
  readonly connections: number;
  /** Requests a second, over all connections. */
  readonly rate: number;
  readonly durationMs: number;
  /** Ends the load early. */
  readonly signal: AbortSignal;
}

/** Counts of requests, and how long responses took. */
export interface LoadResult {
  readonly seconds: number;
  readonly requests: number;
  /** Responses by what they say, and failures by their message. */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly failures: number;
  readonly durations: Histogram;
}

/** Different messages of failures that are kept. */
const maxOutcomes = 20;

/**
 * Sends requests at a fixed rate, over connections that each wait for their response. A duration
 * begins when the request was due: a slow target makes later ones wait, and that is counted.
 */
export async function runLoad(
  connections: readonly Connection[],
  { rate, durationMs, signal }: Omit<LoadOptions, 'connections'>,
): Promise<LoadResult> {
  const load = new Load({ rate, durationMs, signal });
  const close = () => {
    for (const connection of connections) connection.close();
  };
  // Requests without a response do not delay the end.
  signal.addEventListener('abort', close);
  try {
    await Promise.all(connections.map((connection) => load.run(connection)));
  } finally {
    signal.removeEventListener('abort', close);
    close();
  }
  return load.result();
}

class Load {
  readonly #options: Omit<LoadOptions, 'connections'>;
  readonly #startMs = performance.now();
  readonly #outcomes = new Map<string, number>();
  readonly #durations = new Histogram();
  #next = 0;
  #requests = 0;
  #failures = 0;

  constructor(options: Omit<LoadOptions, 'connections'>) {
    this.#options = options;
  }

  async run(connection: Connection): Promise<void> {
    const { rate, durationMs, signal } = this.#options;
    while (!signal.aborted) {
      const dueMs = this.#startMs + (this.#next * 1000) / rate;
      if (dueMs >= this.#startMs + durationMs) return;
      if (performance.now() >= this.#startMs + durationMs) return;
      this.#next += 1;
      const waitMs = dueMs - performance.now();
      // Timers cut fractions off, and fire too early.
      if (waitMs > 0) await delay(Math.ceil(waitMs), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await this.#send(connection, dueMs);
    }
  }

  async #send(connection: Connection, dueMs: number): Promise<void> {
    try {
      const outcome = await connection.send();
      this.#durations.add(performance.now() - dueMs);
      this.#count(outcome);
    } catch (error) {
      if (this.#options.signal.aborted) return;
      this.#failures += 1;
      this.#count(error instanceof Error ? error.message : String(error));
      // A target that is down is not asked in a busy loop.
      await delay(failurePauseMs, undefined, { signal: this.#options.signal }).catch(() => undefined);
    }
    this.#requests += 1;
  }

  #count(outcome: string): void {
    const name = this.#outcomes.has(outcome) || this.#outcomes.size < maxOutcomes ? outcome : 'others';
    this.#outcomes.set(name, (this.#outcomes.get(name) ?? 0) + 1);
  }

  result(): LoadResult {
    return {
      seconds: (performance.now() - this.#startMs) / 1000,
      requests: this.#requests,
      outcomes: this.#outcomes,
      failures: this.#failures,
      durations: this.#durations,
    };
  }
}

const failurePauseMs = 100;
