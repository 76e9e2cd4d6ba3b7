import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import type { EndpointName } from './endpoints.ts';

/** A failure of an endpoint. */
export interface Fault {
  /** Default: all endpoints. */
  endpoint?: EndpointName;
  /** The number of requests that fail. Default 1; `Infinity` for all. */
  times?: number;
  /**
   * `refuse`: the connection fails and nothing is processed. `lose`: the request is processed, but
   * its response is lost (and with it a rotated refresh token). `hang`: no response until the
   * caller aborts. A `Response` or a function: the response, without processing the request. A
   * promise: the request waits for it and is then processed.
   */
  effect: 'refuse' | 'lose' | 'hang' | Response | (() => Response | Promise<Response>) | PromiseLike<unknown>;
}

const faultNames: OptionNames<Fault> = { endpoint: 1, times: 1, effect: 1 };

/** The faults that have not occurred yet, first in first out. */
export class FaultQueue {
  #faults: { readonly fault: Fault; left: number }[] = [];

  add(fault: Fault): void {
    assertKnownOptions('a fault', fault, faultNames);
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

/** The network failure that `fetch` reports as a TypeError. */
export class ConnectionBroken extends Error {
  override name = 'ConnectionBroken';
}

/**
 * Applies a fault; `process` makes the server's response.
 *
 * @throws ConnectionBroken, or the signal's reason if the caller aborts.
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
