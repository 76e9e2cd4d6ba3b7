import type { Schedule } from '../catalog/pipeline.ts';

/** A sender that waits, and for how much. */
interface WaitingSender {
  readonly sender: Sender;
  readonly bytes: number;
}

type Line = Map<Sender, WaitingSender>;

/** Waiting senders: clients with an acknowledgement first, then one of each peer in turn. */
class SendQueue {
  /** By peer, in the order of their turns; within a peer in the order in which they came. */
  readonly #acknowledged = new Map<string, Line>();
  readonly #newcomers = new Map<string, Line>();

  get isEmpty(): boolean {
    return this.#acknowledged.size === 0 && this.#newcomers.size === 0;
  }

  /** Adds a sender; one that is there keeps its place. */
  add(sender: Sender, bytes: number): void {
    const [lines, others] = this.#linesOf(sender);
    removeFrom(others, sender);
    const line = lines.get(sender.peer);
    if (line === undefined) lines.set(sender.peer, new Map([[sender, { sender, bytes }]]));
    else line.set(sender, { sender, bytes });
  }

  /** Removes a sender; its peer has its next turn after all others. False when it was not there. */
  remove(sender: Sender): boolean {
    return removeFrom(this.#acknowledged, sender) || removeFrom(this.#newcomers, sender);
  }

  /** Whether another sender of the same peer goes first. */
  hasBefore(sender: Sender): boolean {
    const { peer } = sender;
    const [lines] = this.#linesOf(sender);
    const [first = sender] = lines.get(peer)?.keys() ?? [];
    return first !== sender || (lines === this.#newcomers && this.#acknowledged.has(peer));
  }

  /** The first sender of each peer. A peer whose first one is removed meanwhile has another turn after the others. */
  *heads(): Generator<WaitingSender> {
    for (const lines of [this.#acknowledged, this.#newcomers]) {
      for (const line of lines.values()) {
        const [first] = line.values();
        if (first !== undefined) yield first;
      }
    }
  }

  #linesOf(sender: Sender): [own: Map<string, Line>, others: Map<string, Line>] {
    return sender.hasAcknowledged()
      ? [this.#acknowledged, this.#newcomers]
      : [this.#newcomers, this.#acknowledged];
  }
}

function removeFrom(lines: Map<string, Line>, sender: Sender): boolean {
  const line = lines.get(sender.peer);
  if (line?.delete(sender) !== true) return false;
  // Inserted again, it comes last.
  lines.delete(sender.peer);
  if (line.size > 0) lines.set(sender.peer, line);
  return true;
}

/** A response that was written and not yet read. */
export interface ResponseInFlight {
  readonly sender: Sender;
  readonly bytes: number;
  readonly isNewcomer: boolean;
  readonly sinceMs: number;
}

/** What keeps a response out: the share of its peer, or the room of all. */
export type Obstacle = 'peer' | 'all';

/** Part of the room that one peer may take: one that reads nothing leaves seven eighths to others. */
const peerShare = 1 / 8;

/** Part of the room, and of that of each peer, that clients without an acknowledgement may take. */
const newcomerShare = 1 / 2;

/** Counts what is in flight. Of each kind one response is let through whatever its size. */
export class SendRoom {
  readonly #maxBytes: number;
  /** The oldest first. */
  readonly #inFlight = new Set<ResponseInFlight>();
  readonly #all: Usage = { bytes: 0, newcomerBytes: 0 };
  readonly #byPeer = new Map<string, Usage>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Undefined when there is room. */
  obstacle(sender: Sender, bytes: number): Obstacle | undefined {
    return this.#exceeded(sender, bytes)[0]?.obstacle;
  }

  /** Of the responses that keep this one out, the oldest; undefined when there is none. */
  longestInTheWay(sender: Sender, bytes: number): ResponseInFlight | undefined {
    const exceeded = this.#exceeded(sender, bytes);
    return [...this.#inFlight].find((response) => exceeded.some(({ covers }) => covers(response)));
  }

  take(sender: Sender, bytes: number, sinceMs: number): ResponseInFlight {
    const response = { sender, bytes, isNewcomer: !sender.hasAcknowledged(), sinceMs };
    this.#inFlight.add(response);
    this.#add(response, bytes);
    return response;
  }

  /** False when it was given back before. */
  release(response: ResponseInFlight): boolean {
    if (!this.#inFlight.delete(response)) return false;
    this.#add(response, -response.bytes);
    return true;
  }

  #add({ sender: { peer }, isNewcomer }: ResponseInFlight, bytes: number): void {
    const own = this.#byPeer.get(peer) ?? { bytes: 0, newcomerBytes: 0 };
    for (const usage of [this.#all, own]) {
      usage.bytes += bytes;
      if (isNewcomer) usage.newcomerBytes += bytes;
    }
    if (own.bytes === 0) this.#byPeer.delete(peer);
    else this.#byPeer.set(peer, own);
  }

  /** Limits that a response does not fit under, those of all first. */
  #exceeded(sender: Sender, bytes: number): readonly Limit[] {
    const own = this.#byPeer.get(sender.peer) ?? { bytes: 0, newcomerBytes: 0 };
    const share = this.#maxBytes * peerShare;
    const isOfPeer = (response: ResponseInFlight): boolean => response.sender.peer === sender.peer;
    const isNewcomer = (response: ResponseInFlight): boolean => response.isNewcomer;
    const limits: readonly Limit[] = [
      { obstacle: 'all', used: this.#all.bytes, most: this.#maxBytes, covers: () => true },
      {
        obstacle: 'all',
        used: this.#all.newcomerBytes,
        most: this.#maxBytes * newcomerShare,
        covers: isNewcomer,
        forNewcomers: true,
      },
      { obstacle: 'peer', used: own.bytes, most: share, covers: isOfPeer },
      {
        obstacle: 'peer',
        used: own.newcomerBytes,
        most: share * newcomerShare,
        covers: (response) => isOfPeer(response) && isNewcomer(response),
        forNewcomers: true,
      },
    ];
    const applies = ({ forNewcomers = false }: Limit): boolean => !forNewcomers || !sender.hasAcknowledged();
    return limits.filter((limit) => applies(limit) && limit.used > 0 && limit.used + bytes > limit.most);
  }
}

interface Usage {
  bytes: number;
  newcomerBytes: number;
}

interface Limit {
  readonly obstacle: Obstacle;
  readonly used: number;
  readonly most: number;
  /** Which responses in flight count against it. */
  readonly covers: (response: ResponseInFlight) => boolean;
  readonly forNewcomers?: boolean;
}

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
