import type { EndpointName } from './endpoints.ts';

/** Something that goes wrong at an endpoint. */
export interface Fault {
  /** Which endpoint; default all. */
  endpoint?: EndpointName;
  /** How many requests it hits. Default 1; `Infinity` for all that follow. */
  times?: number;
  /**
   * What happens.
   * `refuse`: the connection fails and nothing is processed. `lose`: the request is processed, its answer never
   * arrives (what loses a rotated refresh token). `hang`: no answer until the caller gives up. A `Response` or a
   * function: that is answered and nothing is processed. A promise: the request is held until it settles, then processed.
   */
  effect: 'refuse' | 'lose' | 'hang' | Response | (() => Response | Promise<Response>) | PromiseLike<unknown>;
}

/** The faults that have not occurred yet, first in first out. */
export class FaultQueue {
  #faults: { readonly fault: Fault; left: number }[] = [];

  add(fault: Fault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 });
  }

  /** The effect for the next request to that endpoint, counted as used. */
  take(endpoint: EndpointName): Fault['effect'] | undefined {
    const hit = this.#faults.find(({ fault }) => fault.endpoint === undefined || fault.endpoint === endpoint);
    if (hit === undefined) return undefined;
    hit.left -= 1;
    if (hit.left <= 0) this.#faults = this.#faults.filter((other) => other !== hit);
    return hit.fault.effect;
  }

  clear(): void {
    this.#faults = [];
  }
}

/** The connection of a faulty request broke: what `fetch` shows as a TypeError. */
export class ConnectionBroken extends Error {
  override name = 'ConnectionBroken';
}

/**
 * Does what the fault says, with `process` as the server's own answer.
 *
 * @throws ConnectionBroken, or the signal's reason when the caller gives up.
 */
export async function applyFault(
  effect: Fault['effect'],
  process: () => Promise<Response>,
  signal: AbortSignal,
): Promise<Response> {
  if (effect === 'refuse') throw new ConnectionBroken('connection refused');
  if (effect === 'lose') {
    await process();
    throw new ConnectionBroken('connection reset before the answer');
  }
  if (effect === 'hang') return rejectOnAbort(signal);
  if (effect instanceof Response) return effect.clone();
  if (typeof effect === 'function') return effect();
  await Promise.race([effect, rejectOnAbort(signal)]);
  return process();
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
