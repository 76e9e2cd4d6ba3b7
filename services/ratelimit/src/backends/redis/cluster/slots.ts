import { hostAndPort } from '@tollgate/kit/text';

/** Slots of every cluster. */
const slotCount = 16_384;

/**
 * The slot of a key: the CRC16 of its UTF-8 bytes. When the key contains `{…}`, only what is between the first such pair
 * of braces counts, as with every client of a cluster.
 *
 * @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model
 */
export function slotOf(key: string): number {
  return crc16(hashedPart(key)) % slotCount;
}

function hashedPart(key: string): string {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

/** CRC16 with the polynomial 0x1021, from 0 (XMODEM). */
function crc16(text: string): number {
  let crc = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) {
      return crc16OfBytes(Buffer.from(text));
    }
    crc = step(crc, code);
  }
  return crc;
}

function crc16OfBytes(bytes: Uint8Array): number {
  return bytes.reduce(step, 0);
}

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) {
    crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  }
  return crc;
});

function step(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ byte] ?? 0);
}

/** Where a node of a cluster listens. */
export interface NodeAddress {
  readonly host: string;
  readonly port: number;
  /** What the node goes by, in maps and in the log: `host:port`. */
  readonly name: string;
}

/** Makes an address. */
export function nodeAddress(host: string, port: number): NodeAddress {
  return { host, port, name: hostAndPort(host, port) };
}

/**
 * Reads an address as nodes tell it; undefined when it is none. A node that does not know its own host leaves it out or
 * says `?`: it is the one that was asked.
 */
function parseNodeAddress(host: unknown, port: unknown, asked: NodeAddress): NodeAddress | undefined {
  const isPort = typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535;
  if (!isPort) {
    return undefined;
  }
  if (host === null || host === '' || host === '?') {
    return nodeAddress(asked.host, port);
  }
  return typeof host === 'string' ? nodeAddress(host, port) : undefined;
}

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

/** Where a node sends those who ask it for a key that it does not have. */
export interface Redirection {
  /** `moved`: the slot lives there now. `ask`: it is on its way there, and this key only has arrived or will be made there. */
  readonly kind: 'moved' | 'ask';
  readonly slot: number;
  readonly node: NodeAddress;
}

/** Reads the error `MOVED slot host:port` or `ASK slot host:port` of the node that was asked; undefined for any other. */
export function parseRedirection(message: string, asked: NodeAddress): Redirection | undefined {
  const match = /^(MOVED|ASK) (\d{1,5}) (?:\[(.+)\]|(\S*)):(\d{1,5})$/.exec(message);
  if (match === null) {
    return undefined;
  }
  const [, kind, slot, bracketed, bare, port] = match;
  const node = parseNodeAddress(bracketed ?? bare, Number(port), asked);
  return node && { kind: kind === 'ASK' ? 'ask' : 'moved', slot: Number(slot), node };
}
