import { slotCount } from './key-slot.ts';
import { type NodeAddress, parseNodeAddress } from './node-address.ts';

/** Which node serves which slot. */
export interface SlotMap {
  /** Every node that serves any. */
  readonly nodes: readonly NodeAddress[];
  /** Undefined for a slot that nobody serves. */
  nodeOf(slot: number): NodeAddress | undefined;
  /** Notes where a slot has moved. */
  move(slot: number, node: NodeAddress): void;
}

/**
 * Reads the reply of CLUSTER SLOTS: `[first, last, [host, port, …], …replicas]` for each range.
 *
 * @throws Error when it is none, or when the node that was asked knows of no slots.
 */
export function parseSlotMap(reply: unknown, asked: NodeAddress): SlotMap {
  const ranges = Array.isArray(reply) ? reply.map((range: unknown) => parseRange(range, asked)) : [];
  if (ranges.length === 0) {
    throw new Error('it knows of no slots');
  }
  const slots: (NodeAddress | undefined)[] = new Array(slotCount).fill(undefined);
  const nodes = new Map<string, NodeAddress>();
  for (const { first, last, master } of ranges) {
    nodes.set(master.name, master);
    slots.fill(master, first, last + 1);
  }
  return {
    nodes: [...nodes.values()],
    nodeOf: (slot) => slots[slot],
    move(slot, node) {
      slots[slot] = node;
    },
  };
}

interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: NodeAddress;
}

function parseRange(range: unknown, asked: NodeAddress): SlotRange {
  const [first, last, node]: readonly unknown[] = Array.isArray(range) ? range : [];
  const [host, port]: readonly unknown[] = Array.isArray(node) ? node : [];
  const master = parseNodeAddress(host, port, asked);
  if (!isSlot(first) || !isSlot(last) || master === undefined) {
    throw new Error('its reply to CLUSTER SLOTS is none');
  }
  return { first, last, master };
}

function isSlot(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < slotCount;
}
