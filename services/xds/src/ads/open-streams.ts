import { type Connection, compareStalls, type Stall } from '@tollgate/kit/grpc/connections';

/** A stream, as far as it matters for which one is closed first. */
export interface OpenStream {
  /** `address:port` of the client. */
  readonly peer: string;
  /** Undefined when the client owes no answer. */
  readonly stall: Stall | undefined;
}

/** The address of a peer without its port. */
export function getHost(peer: string): string {
  return peer.replace(/:\d+$/, '');
}

/** The open streams, by connection and by address of the client. */
export class OpenStreams<Stream extends OpenStream> implements Iterable<Stream> {
  readonly #all = new Set<Stream>();
  readonly #byPeer = new Map<string, Set<Stream>>();
  readonly #byHost = new Map<string, Set<Stream>>();

  get size(): number {
    return this.#all.size;
  }

  [Symbol.iterator](): Iterator<Stream> {
    return this.#all.values();
  }

  countOf(host: string): number {
    return this.#byHost.get(host)?.size ?? 0;
  }

  add(stream: Stream): void {
    this.#all.add(stream);
    addTo(this.#byPeer, stream.peer, stream);
    addTo(this.#byHost, getHost(stream.peer), stream);
  }

  remove(stream: Stream): void {
    this.#all.delete(stream);
    removeFrom(this.#byPeer, stream.peer, stream);
    removeFrom(this.#byHost, getHost(stream.peer), stream);
  }

  /** The stalled stream that is closed first, of one address or of all. */
  findStalled(host?: string): Stream | undefined {
    let first: Stream | undefined;
    for (const stream of host === undefined ? this.#all : (this.#byHost.get(host) ?? [])) {
      if (stream.stall === undefined) continue;
      if (first?.stall === undefined || compareStalls(stream.stall, first.stall) < 0) first = stream;
    }
    return first;
  }

  /**
   * The stall of a connection; undefined while one of its streams has none. A connection without
   * an ADS stream, such as that of a health check, is closed after all others that stall.
   */
  stallOf({ peer }: Connection): Stall | undefined {
    let last: Stall | undefined;
    for (const { stall } of this.#byPeer.get(peer) ?? []) {
      if (stall === undefined) return undefined;
      if (last === undefined || compareStalls(stall, last) > 0) last = stall;
    }
    return last ?? { hasAnswered: true, sinceMs: Number.POSITIVE_INFINITY };
  }
}

function addTo<Item>(sets: Map<string, Set<Item>>, key: string, item: Item): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([item]));
  else set.add(item);
}

function removeFrom<Item>(sets: Map<string, Set<Item>>, key: string, item: Item): void {
  const set = sets.get(key);
  set?.delete(item);
  if (set?.size === 0) sets.delete(key);
}
