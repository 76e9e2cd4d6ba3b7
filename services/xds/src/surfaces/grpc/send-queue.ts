import type { Sender } from './send-gate.ts';

/** A sender that waits, and for how much. */
export interface WaitingSender {
  readonly sender: Sender;
  readonly bytes: number;
}

type Line = Map<Sender, WaitingSender>;

/** Waiting senders: clients with an acknowledgement first, then one of each peer in turn. */
export class SendQueue {
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
