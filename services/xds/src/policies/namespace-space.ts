/** The space of its namespace that a policy uses. */
interface SpaceUse {
  readonly id: string;
  readonly namespace: string;
  /** Bytes of the version that is in force, and of the one that replaces it. */
  readonly before: number;
  readonly after: number;
}

/**
 * The space that policies of each namespace have, so that no team can use up what auth servers
 * accept from all of them.
 */
export class NamespaceSpace {
  readonly #maxBytes: number;
  readonly #used = new Map<string, number>();
  /** Ids of policies that were refused, by namespace. */
  readonly #waiting = new Map<string, Set<string>>();
  readonly #freed = new Set<string>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Why a version is refused; undefined if there is space for it. */
  findProblem({ namespace, before, after }: SpaceUse): string | undefined {
    const bytes = (this.#used.get(namespace) ?? 0) - before + after;
    if (after <= before || bytes <= this.#maxBytes) return undefined;
    return `the policies of the namespace ${namespace} would have ${bytes} bytes together, and at most ${this.#maxBytes} are allowed: delete some, or use another namespace`;
  }

  /** Records what is in force now. */
  use({ id, namespace, before, after }: SpaceUse, wasRefused: boolean): void {
    this.#used.set(namespace, (this.#used.get(namespace) ?? 0) - before + after);
    if (after < before) this.#freed.add(namespace);
    const waiting = this.#waiting.get(namespace) ?? new Set();
    if (wasRefused) this.#waiting.set(namespace, waiting.add(id));
    else if (waiting.delete(id) && waiting.size === 0) this.#waiting.delete(namespace);
  }

  /** Policies that were refused in namespaces which have more space now. */
  takeWaiting(): readonly string[] {
    const ids = [...this.#freed].flatMap((namespace) => [...(this.#waiting.get(namespace) ?? [])]);
    this.#freed.clear();
    return ids;
  }
}
