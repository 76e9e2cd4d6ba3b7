import { hostAndPort } from '@tollgate/kit/text';

const slotCount = 16_384;

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
  /** `host:port`: the identity of the node in maps and logs. */
  readonly name: string;
}

export function nodeAddress(host: string, port: number): NodeAddress {
  return { host, port, name: hostAndPort(host, port) };
}

/**
 * Parses an address from a reply of `source`; undefined when it is invalid. A node that does not
 * know its own host omits it or sends `?`: then it is the host of `source`.
 */
function parseNodeAddress(host: unknown, port: unknown, source: NodeAddress): NodeAddress | undefined {
  const isPort = typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535;
  if (!isPort) {
    return undefined;
  }
  if (host === null || host === '' || host === '?') {
    return nodeAddress(source.host, port);
  }
  return typeof host === 'string' ? nodeAddress(host, port) : undefined;
}

interface Redirection {
  /**
   * `moved`: the slot is on that node now. `ask`: it is being migrated, and this key is there
   * already.
   */
  readonly kind: 'moved' | 'ask';
  readonly slot: number;
  readonly node: NodeAddress;
}

/** Parses the error `MOVED slot host:port` or `ASK slot host:port`; undefined for other errors. */
export function parseRedirection(message: string, source: NodeAddress): Redirection | undefined {
  const match = /^(MOVED|ASK) (\d{1,5}) (?:\[(.+)\]|(\S*)):(\d{1,5})$/.exec(message);
  if (match === null) {
    return undefined;
  }
  const [, kind, slot, bracketed, bare, port] = match;
  const node = parseNodeAddress(bracketed ?? bare, Number(port), source);
  return node && { kind: kind === 'ASK' ? 'ask' : 'moved', slot: Number(slot), node };
}

export class SlotMap {
  readonly nodes: readonly NodeAddress[];
  readonly #slots: (NodeAddress | undefined)[];

  constructor(ranges: readonly SlotRange[]) {
    this.#slots = new Array(slotCount).fill(undefined);
    const nodes = new Map<string, NodeAddress>();
    for (const { first, last, master } of ranges) {
      nodes.set(master.name, master);
      this.#slots.fill(master, first, last + 1);
    }
    this.nodes = [...nodes.values()];
  }

  /** Undefined for a slot without a node. */
  getNode(slot: number): NodeAddress | undefined {
    return this.#slots[slot];
  }

  move(slot: number, node: NodeAddress): void {
    this.#slots[slot] = node;
  }
}

interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: NodeAddress;
}

/**
 * Parses the reply to CLUSTER SLOTS: `[first, last, [host, port, …], …replicas]` for each range.
 *
 * @throws Error when the reply is invalid, or the node knows no slots.
 */
export function parseSlotMap(reply: unknown, source: NodeAddress): SlotMap {
  const ranges = Array.isArray(reply) ? reply.map((range: unknown) => parseRange(range, source)) : [];
  if (ranges.length === 0) {
    throw new Error('its slot map is empty');
  }
  return new SlotMap(ranges);
}

function parseRange(range: unknown, source: NodeAddress): SlotRange {
  const [first, last, node]: readonly unknown[] = Array.isArray(range) ? range : [];
  const [host, port]: readonly unknown[] = Array.isArray(node) ? node : [];
  const master = parseNodeAddress(host, port, source);
  if (!isSlot(first) || !isSlot(last) || master === undefined) {
    throw new Error('its reply to CLUSTER SLOTS is invalid');
  }
  return { first, last, master };
}

function isSlot(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < slotCount;
}

/**
 * The slot of a key: CRC16 of its UTF-8 bytes, or of the part inside the first `{…}` (hash tag).
 *
 * @see
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model
 */
export function getSlot(key: string): number {
  return crc16(getHashedPart(key)) % slotCount;
}

function getHashedPart(key: string): string {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

/** CRC16 with the polynomial 0x1021 and the initial value 0 (XMODEM). */
function crc16(text: string): number {
  let crc = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) {
      return Buffer.from(text).reduce(addByte, 0);
    }
    crc = addByte(crc, code);
  }
  return crc;
}

const crcTable = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) {
    crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  }
  return crc;
});

function addByte(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (crcTable[(crc >> 8) ^ byte] ?? 0);
}
