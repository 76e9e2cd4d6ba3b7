import { sleepFor } from '@tollgate/kit/time';
import { backendFailure } from '../../../errors.ts';
import type { RedisConnection } from '../connection.ts';
import { type NodeAddress, parseSlotMap, type SlotMap } from './slots.ts';

export interface TopologyHooks {
  /** Nodes to query when no other is known, or none of those answers. */
  readonly seeds: readonly NodeAddress[];
  /** Connected nodes, which are queried first. */
  readonly connected: () => readonly NodeAddress[];
  /** Queries one node, in bounded time. */
  readonly query: (node: NodeAddress, signal: AbortSignal) => Promise<SlotMap>;
  /** Backoff before the n-th consecutive attempt while there is no map yet, milliseconds. */
  readonly startDelayMs: (attempt: number) => number;
  readonly refreshIntervalMs: number;
  readonly onMap: (map: SlotMap) => void;
  /** Called when no node answers: every time before the first map, later once per outage. */
  readonly onError: (error: Error) => void;
}

/**
 * Minimum time between two reads. When a node is lost, every request for it asks for one until a
 * replica takes over.
 */
const minRefreshIntervalMs = 500;

/** Nodes whose failures the error names; the others failed in the same ways. */
const maxNamedFailures = 5;

/** Keeps the slot map: reads it at the start, regularly, and when it turns out to be outdated. */
export class Topology {
  readonly #hooks: TopologyHooks;
  readonly #stopping = new AbortController();
  #map: SlotMap | undefined;
  #isRefreshing: boolean = false;
  #isRequested: boolean = false;
  #isFailing: boolean = false;
  #preferred: NodeAddress | undefined;
  #rotation = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(hooks: TopologyHooks) {
    this.#hooks = hooks;
  }

  /** Undefined until the first read. */
  get map(): SlotMap | undefined {
    return this.#map;
  }

  /** Reads a first map, without a time limit; rejects when closed before. */
  async start(): Promise<void> {
    const { signal } = this.#stopping;
    for (let attempt = 1; this.#map === undefined; attempt += 1) {
      try {
        await this.#read();
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof Error) {
          this.#hooks.onError(error);
        }
        await sleepFor(this.#hooks.startDelayMs(attempt), { signal });
      }
    }
    signal.throwIfAborted();
    this.#timer ??= setInterval(() => this.refresh(), this.#hooks.refreshIntervalMs);
  }

  /** Reads the map again because it is outdated, from `preferred` first if given. */
  refresh(preferred?: NodeAddress): void {
    this.#preferred = preferred ?? this.#preferred;
    this.#isRequested = true;
    if (!this.#isRefreshing && this.#map !== undefined) {
      void this.#refreshWhileRequested();
    }
  }

  close(reason: Error): void {
    this.#stopping.abort(reason);
    clearInterval(this.#timer);
  }

  /**
   * Each node once, starting with another one each time: the map of one node may stay outdated for
   * longer.
   */
  #getCandidates(): readonly NodeAddress[] {
    const connected = this.#hooks.connected();
    this.#rotation += 1;
    const rotated = connected.map((_, i) => connected[(i + this.#rotation) % connected.length]);
    const all = [this.#preferred, ...rotated, ...(this.#map?.nodes ?? []), ...this.#hooks.seeds];
    this.#preferred = undefined;
    const named = all.flatMap((node) => (node === undefined ? [] : [[node.name, node] as const]));
    // A Map keeps the position of the first of two equal keys.
    return [...new Map(named).values()];
  }

  async #read(): Promise<void> {
    const failures: Error[] = [];
    for (const node of this.#getCandidates()) {
      this.#stopping.signal.throwIfAborted();
      try {
        this.#map = await this.#hooks.query(node, this.#stopping.signal);
        this.#hooks.onMap(this.#map);
        return;
      } catch (error) {
        failures.push(error instanceof Error ? error : new Error(String(error)));
      }
    }
    const reasons = failures.slice(0, maxNamedFailures).map(({ message }) => message);
    throw backendFailure(
      `no node of the Redis Cluster returned its slots: ${reasons.join('; ')}`,
      failures[0],
    );
  }

  async #refreshWhileRequested(): Promise<void> {
    const { signal } = this.#stopping;
    this.#isRefreshing = true;
    try {
      while (this.#isRequested && !signal.aborted) {
        this.#isRequested = false;
        await this.#refreshOnce();
        await sleepFor(minRefreshIntervalMs, { signal });
      }
    } catch {
      // Closed meanwhile.
    } finally {
      this.#isRefreshing = false;
    }
  }

  async #refreshOnce(): Promise<void> {
    try {
      await this.#read();
      this.#isFailing = false;
    } catch (error) {
      this.#stopping.signal.throwIfAborted();
      if (!this.#isFailing && error instanceof Error) {
        this.#hooks.onError(error);
      }
      this.#isFailing = true;
    }
  }
}

export interface QuerySlotsOptions {
  /** Creates a connection that is not open yet. */
  readonly open: (node: NodeAddress) => RedisConnection;
  /** Limit of connecting and the reply together, milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Queries the slots of a node, over a separate connection so that a busy one does not delay finding
 * another node.
 *
 * @throws Error naming the node.
 */
export async function querySlots(node: NodeAddress, options: QuerySlotsOptions): Promise<SlotMap> {
  const { open, timeoutMs, signal } = options;
  const connection = open(node);
  let cause: Error | undefined;
  const abort = (reason: Error): void => {
    cause ??= reason;
    connection.close();
  };
  const stop = (): void => abort(new Error('stopped'));
  const timer = setTimeout(() => abort(new Error(`no answer within ${timeoutMs}ms`)), timeoutMs);
  signal.addEventListener('abort', stop, { once: true });
  try {
    await connection.connect();
    return parseSlotMap(await connection.call('CLUSTER', 'SLOTS'), node);
  } catch (error) {
    const reason = cause ?? error;
    throw new Error(`${node.name}: ${reason instanceof Error ? reason.message : reason}`, { cause: reason });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    connection.close();
  }
}
