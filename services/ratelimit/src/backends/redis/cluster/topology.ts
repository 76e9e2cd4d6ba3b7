import { sleepFor } from '@tollgate/kit/time';
import type { Redis } from 'ioredis';
import { backendFailure } from '../../../errors.ts';
import { type NodeAddress, parseSlotMap, type SlotMap } from './slots.ts';

/** What a topology takes. */
export interface ClusterTopologyDeps {
  /** Nodes that are asked when no other is known, or none of those answers. */
  readonly seeds: readonly NodeAddress[];
  /** Nodes that there are connections to: they are asked first. */
  readonly connected: () => readonly NodeAddress[];
  /** Asks one node; in bounded time. */
  readonly ask: (node: NodeAddress, signal: AbortSignal) => Promise<SlotMap>;
  /** Delay before the n-th attempt in a row while there was no map yet, milliseconds. */
  readonly startDelayMs: (attempt: number) => number;
  /** The map is read this often at least, milliseconds. */
  readonly refreshEveryMs: number;
  /** Told of each map that was read. */
  readonly onMap: (map: SlotMap) => void;
  /** Told when no node answers: of each time before there was a map, later of the first in a row. */
  readonly onError: (error: Error) => void;
}

/** What is known of where the slots are. */
export interface ClusterTopology {
  /** Undefined until a first one was read. */
  map(): SlotMap | undefined;
  /** Reads a first map, however long that takes; rejects when closed before. */
  start(): Promise<void>;
  /** Has the map read again: something was not as it says. `first`, if given, is asked first. */
  refresh(first?: NodeAddress): void;
  /** Idempotent. */
  close(reason: Error): void;
}

/**
 * The least time between two readings. Where a node is lost, each request for it asks for one, until a replica has taken
 * its place.
 */
const pauseMs = 500;

/** Nodes whose failures the error names; the others failed in the same ways. */
const maxNamedFailures = 5;

/** Keeps the map: reads it at the start, and again whenever it turns out to be wrong. */
export function createClusterTopology(deps: ClusterTopologyDeps): ClusterTopology {
  const stopping = new AbortController();
  let map: SlotMap | undefined;
  let isReading = false;
  let isWanted = false;
  let isFailing = false;
  let preferred: NodeAddress | undefined;
  let turn = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Each node once, and another one first each time: what one node tells may be wrong for longer. */
  function candidates(): readonly NodeAddress[] {
    const connected = deps.connected();
    turn += 1;
    const rotated = connected.map((_, i) => connected[(i + turn) % connected.length]);
    const all = [preferred, ...rotated, ...(map?.nodes ?? []), ...deps.seeds];
    preferred = undefined;
    const named = all.flatMap((node) => (node === undefined ? [] : [[node.name, node] as const]));
    // Of two with the same name a Map keeps the place of the first.
    return [...new Map(named).values()];
  }

  async function read(): Promise<void> {
    const failures: Error[] = [];
    for (const node of candidates()) {
      stopping.signal.throwIfAborted();
      try {
        map = await deps.ask(node, stopping.signal);
        deps.onMap(map);
        return;
      } catch (error) {
        failures.push(error instanceof Error ? error : new Error(String(error)));
      }
    }
    const why = failures.slice(0, maxNamedFailures).map(({ message }) => message);
    throw backendFailure(
      `no node of the Redis Cluster tells where its slots are: ${why.join('; ')}`,
      failures[0],
    );
  }

  async function readAgain(): Promise<void> {
    isReading = true;
    try {
      while (isWanted && !stopping.signal.aborted) {
        isWanted = false;
        await readOnce();
        await sleepFor(pauseMs, { signal: stopping.signal });
      }
    } catch {
      // Closed meanwhile.
    } finally {
      isReading = false;
    }
  }

  async function readOnce(): Promise<void> {
    try {
      await read();
      isFailing = false;
    } catch (error) {
      stopping.signal.throwIfAborted();
      if (!isFailing && error instanceof Error) {
        deps.onError(error);
      }
      isFailing = true;
    }
  }

  function refresh(first?: NodeAddress): void {
    preferred = first ?? preferred;
    isWanted = true;
    if (!isReading && map !== undefined) {
      void readAgain();
    }
  }

  return {
    map: () => map,
    async start() {
      for (let attempt = 1; map === undefined; attempt += 1) {
        try {
          await read();
        } catch (error) {
          stopping.signal.throwIfAborted();
          if (error instanceof Error) {
            deps.onError(error);
          }
          await sleepFor(deps.startDelayMs(attempt), { signal: stopping.signal });
        }
      }
      stopping.signal.throwIfAborted();
      timer ??= setInterval(refresh, deps.refreshEveryMs);
    },
    refresh,
    close(reason) {
      stopping.abort(reason);
      clearInterval(timer);
    },
  };
}

/** How a node is asked. */
export interface AskForSlotsOptions {
  /** Makes a client that is not yet connected, and that never connects again by itself. */
  readonly open: (node: NodeAddress) => Redis;
  /** Bound on connecting and asking together, milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Asks a node where the slots are, over a connection of its own: one that is busy must not hold up finding another.
 *
 * @throws Error naming the node.
 */
export async function askForSlots(node: NodeAddress, options: AskForSlotsOptions): Promise<SlotMap> {
  const { open, timeoutMs, signal } = options;
  const connection = open(node);
  let cause: Error | undefined;
  const cut = (reason: Error): void => {
    cause ??= reason;
    connection.disconnect();
  };
  const stop = (): void => cut(new Error('stopped'));
  const timer = setTimeout(() => cut(new Error(`no answer within ${timeoutMs}ms`)), timeoutMs);
  signal.addEventListener('abort', stop, { once: true });
  // Why a connection cannot be made, or a password is refused, comes as an event; the promises know less.
  connection.on('error', cut);
  try {
    await connection.connect();
    return parseSlotMap(await connection.cluster('SLOTS'), node);
  } catch (error) {
    const reason = cause ?? error;
    throw new Error(`${node.name}: ${reason instanceof Error ? reason.message : reason}`, { cause: reason });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    connection.disconnect();
  }
}
