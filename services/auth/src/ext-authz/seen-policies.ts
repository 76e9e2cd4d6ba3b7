/** Bound of a report; others follow in the next ones. */
const maxReported = 5_000;

/**
 * Policies that checks of gateways had, each to be reported once on a stream: the xDS server learns
 * that they are enforced. The number is bounded by the policies in force.
 */
export class SeenPolicies {
  readonly #seen = new Set<string>();
  readonly #reported = new Set<string>();

  add(name: string | undefined): void {
    if (name !== undefined) this.#seen.add(name);
  }

  /** The server has forgotten what earlier streams have reported. */
  startStream(): void {
    this.#reported.clear();
  }

  /** Forgets all others: they are not in force any more, or a check with a new version is news. */
  retain(names: ReadonlySet<string>): void {
    for (const set of [this.#seen, this.#reported])
      for (const name of set) if (!names.has(name)) set.delete(name);
  }

  /** Undefined when there is nothing new. */
  collect(): readonly string[] | undefined {
    if (this.#seen.size === this.#reported.size) return undefined;
    const names: string[] = [];
    for (const name of this.#seen) {
      if (names.length === maxReported) break;
      if (!this.#reported.has(name)) names.push(name);
    }
    return names;
  }

  /** Called when the report with these names is sent. */
  sent(names: readonly string[]): void {
    for (const name of names) this.#reported.add(name);
  }
}
