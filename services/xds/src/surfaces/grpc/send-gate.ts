import type { Schedule } from '../../pipeline/schedule.ts';
import { SendQueue } from './send-queue.ts';
import { SendRoom } from './send-room.ts';

/** One stream, as the gate sees it. */
export interface Sender {
  /** Who is on the other side: streams of one peer share its part of the room. */
  readonly peer: string;
  /** Whether the client has ever acknowledged a response: part of the room is reserved for such clients. */
  hasAcknowledged(): boolean;
  /** Called once when there may be room for the response that there was none for. */
  retry(): void;
  /** Ends the stream, because it holds up others. */
  cutOff(): void;
}

/** What a gate grants. */
export interface SendGateOptions {
  /** Bytes in flight, over all streams. */
  readonly maxBytes: number;
  /** While others wait for room, a response that has not been read for this long ends its stream. */
  readonly stallMs: number;
  /** A clock in milliseconds that does not go back. */
  readonly now: () => number;
  readonly schedule: Schedule;
}

/**
 * Bounds what all streams together have in flight: bytes that were written and not yet read by their clients. A peer has a
 * share of it, half is reserved for clients that have acknowledged a response, and waiting streams are served one of each
 * peer in turn.
 */
export class SendGate {
  readonly #options: SendGateOptions;
  readonly #queue = new SendQueue();
  readonly #room: SendRoom;
  #cancelCheck: (() => void) | undefined;
  /** The sender whose turn it is: it does not wait behind those in the queue. */
  #turnOf: Sender | undefined;
  /** Whether one that waits finds no room at all: then none may overtake it, or a large response would wait for ever. */
  #isFull = false;
  #isFullForNewcomers = false;

  constructor(options: SendGateOptions) {
    this.#options = options;
    this.#room = new SendRoom(options.maxBytes);
  }

  /**
   * Takes room for a response; the returned function gives it back. Undefined when there is no room: `sender.retry` is
   * called when there may be. The response is not held meanwhile, so that the latest is sent in the end.
   */
  enter(sender: Sender, bytes: number): (() => void) | undefined {
    const mayEnter = this.#turnOf === sender || !this.#mustQueue(sender);
    if (!mayEnter || this.#room.obstacle(sender, bytes) !== undefined) {
      this.#queue.add(sender, bytes);
      this.#noteFull(sender, bytes);
      this.#checkLater();
      return undefined;
    }
    this.#queue.remove(sender);
    const response = this.#room.take(sender, bytes, this.#options.now());
    return () => {
      if (this.#room.release(response)) this.#serveQueue();
    };
  }

  /** Removes a sender from the queue. */
  leave(sender: Sender): void {
    if (this.#queue.remove(sender)) this.#serveQueue();
  }

  #mustQueue(sender: Sender): boolean {
    return this.#isFullFor(sender) || this.#queue.hasBefore(sender);
  }

  #isFullFor(sender: Sender): boolean {
    return sender.hasAcknowledged() ? this.#isFull : this.#isFullForNewcomers;
  }

  #noteFull(sender: Sender, bytes: number): void {
    if (this.#room.obstacle(sender, bytes) !== 'all') return;
    this.#isFullForNewcomers = true;
    if (sender.hasAcknowledged()) this.#isFull = true;
  }

  #serveQueue(): void {
    this.#isFull = false;
    this.#isFullForNewcomers = false;
    for (const { sender, bytes } of this.#queue.heads()) {
      if (this.#isFullFor(sender)) continue;
      if (this.#room.obstacle(sender, bytes) !== undefined) {
        this.#noteFull(sender, bytes);
        continue;
      }
      this.#queue.remove(sender);
      const before = this.#turnOf;
      this.#turnOf = sender;
      sender.retry();
      this.#turnOf = before;
    }
    this.#checkLater();
  }

  #checkLater(): void {
    if (this.#queue.isEmpty || this.#cancelCheck !== undefined) return;
    this.#cancelCheck = this.#options.schedule(this.#options.stallMs / 4, () => {
      this.#cancelCheck = undefined;
      while (this.#cutStalled()) this.#serveQueue();
      this.#checkLater();
    });
  }

  /** Cuts the longest stalled stream that keeps one in the queue out; false when there is none. */
  #cutStalled(): boolean {
    const stalledSinceMs = this.#options.now() - this.#options.stallMs;
    for (const { sender, bytes } of this.#queue.heads()) {
      const longest = this.#room.longestInTheWay(sender, bytes);
      if (longest === undefined || longest.sinceMs > stalledSinceMs) continue;
      // Before the stream has ended, which may take a while: its bytes are dropped.
      this.#room.release(longest);
      longest.sender.cutOff();
      return true;
    }
    return false;
  }
}
