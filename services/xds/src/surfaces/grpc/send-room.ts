import type { Sender } from './send-gate.ts';

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
