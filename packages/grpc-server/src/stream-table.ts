const minSlots = 16;
/** Twice as many as most servers and clients allow streams: 2 slots per stream keep them apart. */
const maxSlots = 512;

/**
 * Streams of a connection by their identifiers.
 *
 * A `Map` with as many deletions as insertions is copied again and again. The copies that it leaves
 * behind refer to its streams, and once the map has reached V8's old generation they do so until a
 * major collection: a connection that is used for long then costs twice the CPU time for each call.
 * Here a stream has the slot of its identifier and is removed from it. The few that meet another
 * one there are kept in a map.
 */
export class StreamTable<Stream extends { readonly id: number }> {
  #slots: (Stream | undefined)[] = new Array<Stream | undefined>(minSlots).fill(undefined);
  /** Streams whose slots are taken. */
  readonly #others = new Map<number, Stream>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    const stream = this.#slots[this.#slotOf(id)];
    if (stream?.id === id) return stream;
    return this.#others.size === 0 ? undefined : this.#others.get(id);
  }

  /** Adds a stream whose identifier is new. */
  add(stream: Stream): void {
    this.#size += 1;
    if (this.#size * 2 > this.#slots.length && this.#slots.length < maxSlots) this.#grow();
    this.#put(stream);
  }

  /** Removes a stream if it is there. */
  delete(stream: Stream): void {
    const slot = this.#slotOf(stream.id);
    if (this.#slots[slot] === stream) this.#slots[slot] = undefined;
    else if (!this.#others.delete(stream.id)) return;
    this.#size -= 1;
  }

  clear(): void {
    this.#slots.fill(undefined);
    this.#others.clear();
    this.#size = 0;
  }

  /** All streams, in no order. They may be deleted meanwhile. */
  *values(): Generator<Stream> {
    for (const stream of this.#slots) if (stream !== undefined) yield stream;
    yield* this.#others.values();
  }

  #put(stream: Stream): void {
    const slot = this.#slotOf(stream.id);
    if (this.#slots[slot] === undefined) this.#slots[slot] = stream;
    else this.#others.set(stream.id, stream);
  }

  #grow(): void {
    const streams = [...this.values()];
    this.#slots = new Array<Stream | undefined>(this.#slots.length * 2).fill(undefined);
    this.#others.clear();
    for (const stream of streams) this.#put(stream);
  }

  /** Identifiers of clients are odd. */
  #slotOf(id: number): number {
    return (id >>> 1) & (this.#slots.length - 1);
  }
}
