import type { Charge, Lease, Rate, Unit } from '@tollgate/rules/rule-set';
import type { CounterResult } from '../algorithms/algorithm.ts';
import type { Settings } from '../config/settings.ts';
import type { Context } from '../context.ts';
import type { AllOrNone, ConditionalHit } from './all-or-none.ts';

export type HitUnit = Unit | 'period';

export interface Hit {
  readonly key: string;
  /**
   * Whole number of hits to add; 0 reads the counter and extends the life of a window. With a
   * `rate`, 0 checks whether one hit is left. A negative number takes hits back: the counter stays
   * at 0 or above, and is not created.
   */
  readonly addend: number;
  /**
   * The unit of the window, or `period` for one whose key has its length; counters of a second may
   * have their own store.
   */
  readonly unit: HitUnit;
  /** Whole seconds until the window ends, at least 1. No later request uses the key. */
  readonly secondsLeft: number;
  /** TTL in stores: the whole unit plus jitter, so at least `secondsLeft`. */
  readonly ttlSeconds: number;
  /** Hits that the limit allows at once. */
  readonly capacity: number;
  /** `always`: the hits are counted even if the limit refuses them. Absent for `allowed`. */
  readonly charge?: Charge | undefined;
  /** Absent for fixed windows. The counter has a separate key. */
  readonly rate?: Rate | undefined;
  /** Absent where each hit is counted in the store. */
  readonly lease?: Lease | undefined;
}

/**
 * A store of counters.
 *
 * `take` and `peek` reject with `backend_failure` when the store does not answer in time; the hits
 * of a rejected `take` may have been counted. Every implementation passes the suite in
 * test/stores/counter-store-contract.ts.
 */
export interface CounterStore {
  /**
   * Counts the hits and resolves with their results, in order. Equal keys are counted one after the
   * other. Fixed windows count hits that do not fit, too; other limits take nothing then, or up to
   * their debt.
   */
  take(hits: readonly Hit[]): Promise<readonly CounterResult[]>;
  /** Resolves with the results that hits of 0 would have, and changes nothing. */
  peek(hits: readonly Hit[]): Promise<readonly CounterResult[]>;
  /**
   * Counts the hits of a request, or none of them when it is refused. Absent where the store cannot
   * decide several counters together; rules that need it are refused when they are loaded then.
   */
  readonly takeAllOrNone?: ((hits: readonly ConditionalHit[]) => Promise<AllOrNone>) | undefined;
  /** Absent where the store cannot do it: memcached lists no keys and sends no messages. */
  readonly shared?: SharedStore | undefined;
  /** Connects; resolves once the store can be used. Rejects soon after `signal` aborts. */
  start(options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Closes all connections; idempotent. */
  close(): Promise<void>;
}

/** Receives the messages of all replicas, its own included. */
export interface Subscriber {
  readonly onMessage: (message: string) => void;
  /** Messages may have been missed: called at first, and after each reconnect. */
  readonly onGap: () => void;
}

/** Operations of a store that the counter API needs besides counters. Rejects as `take` does. */
export interface SharedStore {
  /** Deletes the counters whose keys begin with a text. Resolves with their number. */
  deleteByPrefix(prefix: string): Promise<number>;
  /** Texts by name: thousands at most, which all replicas read when they start. */
  listEntries(): Promise<ReadonlyMap<string, string>>;
  /** Resolves with undefined when there is none. */
  getEntry(name: string): Promise<string | undefined>;
  countEntries(): Promise<number>;
  setEntry(name: string, text: string): Promise<void>;
  /** Resolves with false when there was none. */
  deleteEntry(name: string): Promise<boolean>;
  /** Sends a message to all subscribers. */
  publish(message: string): Promise<void>;
  /**
   * Subscribes until the signal aborts. Resolves after the first attempt, which may have failed.
   */
  subscribe(subscriber: Subscriber, signal: AbortSignal): Promise<void>;
}

/** Creates a store from the settings; may read files. */
export type CreateStore = (settings: Settings, context: Context) => Promise<CounterStore>;

/** The next of the results that a store has for a part of the hits. */
export function requireNext(results: Iterator<CounterResult> | undefined): CounterResult {
  const next = results?.next();
  if (next === undefined || next.done === true) throw new TypeError('the store has no result for a hit');
  return next.value;
}

/** Sends each hit to its server. Resolves with the results in the order of the hits. */
export async function sendInParts<H, Server>(
  hits: readonly H[],
  findServer: (hit: H) => Server,
  send: (server: Server, hits: readonly H[]) => Promise<readonly CounterResult[]>,
): Promise<readonly CounterResult[]> {
  const servers: Server[] = [];
  const parts = Map.groupBy(hits, (hit) => {
    const server = findServer(hit);
    servers.push(server);
    return server;
  });
  for (const [server, part] of parts) if (part.length === hits.length) return send(server, part);
  const sent = Array.from(parts, async ([server, part]) => [server, await send(server, part)] as const);
  const rest = new Map((await Promise.all(sent)).map(([server, results]) => [server, results.values()]));
  return servers.map((server) => requireNext(rest.get(server)));
}
