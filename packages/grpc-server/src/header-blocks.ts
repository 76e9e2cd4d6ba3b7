import { ConnectionError, ErrorCode } from './frames.ts';
import { HpackDecoder } from './hpack/decoder.ts';
import type { HeaderField } from './hpack/static-table.ts';
import type { Limits } from './limits.ts';
import { type RequestHead, readRequestHead } from './request.ts';

/** Requests of one client have few different blocks once its dynamic table has settled. */
const rememberedHeads = 16;

/** Usual requests are far smaller. Larger ones are decoded each time. */
const maxRememberedBytes = 2_048;

/**
 * Puts the header blocks of a connection together, decodes them, and remembers what equal blocks
 * meant.
 */
export class HeaderBlocks {
  readonly #decoder: HpackDecoder;
  readonly #limits: Limits;
  #fragments: Buffer[] = [];
  #bytes = 0;
  #continuations = 0;
  /** Heads by their encoded block, valid for one state of the dynamic table. */
  readonly #heads = new Map<string, RequestHead>();
  #headsAt = 0;
  /** A block has begun and not ended. */
  open: boolean = false;
  streamId = 0;
  endStream: boolean = false;
  selfDependent: boolean = false;

  constructor(limits: Limits) {
    this.#limits = limits;
    this.#decoder = new HpackDecoder(limits.maxHeaderListBytes);
  }

  begin(
    streamId: number,
    fragment: Buffer,
    { endStream, selfDependent }: { endStream: boolean; selfDependent: boolean },
  ): void {
    this.open = true;
    this.streamId = streamId;
    this.endStream = endStream;
    this.selfDependent = selfDependent;
    this.#fragments = [fragment];
    this.#bytes = fragment.length;
    this.#continuations = 0;
  }

  /** Bytes of a block that has not ended. */
  get heldBytes(): number {
    return this.open ? this.#bytes : 0;
  }

  /** @returns whether the block is complete. */
  addContinuation(fragment: Buffer, last: boolean): boolean {
    if (!this.open) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'CONTINUATION without HEADERS');
    this.#fragments.push(fragment);
    this.#bytes += fragment.length;
    this.#continuations++;
    const { maxContinuationFrames, maxHeaderListBytes } = this.#limits;
    if (this.#continuations > maxContinuationFrames || this.#bytes > 4 * maxHeaderListBytes) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'header block is too large');
    }
    return last;
  }

  /**
   * Decodes the block as a request.
   *
   * @returns a string when the request is malformed, undefined when its header list is too large.
   */
  readRequest(): RequestHead | string | undefined {
    const block = this.#take();
    if (this.#headsAt !== this.#decoder.tableChanges) {
      this.#heads.clear();
      this.#headsAt = this.#decoder.tableChanges;
    }
    const key = block.length > maxRememberedBytes ? undefined : block.toString('latin1');
    const known = key === undefined ? undefined : this.#heads.get(key);
    if (known !== undefined) return known;
    const fields = this.#decode(block);
    if (fields === undefined) return undefined;
    const head = readRequestHead(fields);
    // A block that changes the table means something else the next time.
    const unchanged = this.#headsAt === this.#decoder.tableChanges;
    const isSmall = typeof head !== 'string' && head.bytes <= maxRememberedBytes;
    if (unchanged && isSmall && key !== undefined && this.#heads.size < rememberedHeads)
      this.#heads.set(key, head);
    return head;
  }

  /**
   * Decodes the block as trailers, or to keep the state of HPACK; undefined when the list is too
   * large.
   */
  readFields(): HeaderField[] | undefined {
    return this.#decode(this.#take());
  }

  #take(): Buffer {
    this.open = false;
    const [first = Buffer.alloc(0)] = this.#fragments;
    const block = this.#fragments.length > 1 ? Buffer.concat(this.#fragments) : first;
    this.#fragments = [];
    return block;
  }

  #decode(block: Buffer): HeaderField[] | undefined {
    try {
      return this.#decoder.decode(block);
    } catch (error) {
      throw new ConnectionError(
        ErrorCode.COMPRESSION_ERROR,
        error instanceof Error ? error.message : 'malformed header block',
      );
    }
  }
}
