import type { Redis } from 'ioredis';
import type { NodeAddress } from './node-address.ts';
import { parseSlotMap, type SlotMap } from './slot-map.ts';

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
