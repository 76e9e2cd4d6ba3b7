/** Host names with values: exact ones, and wildcards such as `*.example.com`. */
export class HostMap<Value> {
  readonly #exact: Map<string, Value>;
  /** By the suffix after the `*`: `.example.com`. */
  readonly #wildcards: Map<string, Value>;
  #every: Value | undefined;

  /** A copy of `other`, or an empty map. */
  constructor(other?: HostMap<Value>) {
    this.#exact = new Map(other === undefined ? [] : other.#exact);
    this.#wildcards = new Map(other === undefined ? [] : other.#wildcards);
    this.#every = other === undefined ? undefined : other.#every;
  }

  get isEmpty(): boolean {
    return this.#exact.size + this.#wildcards.size === 0 && this.#every === undefined;
  }

  /** @param host in the form of `normalizeHost`, or a wildcard, or `*` */
  set(host: string, value: Value): void {
    if (host === '*') this.#every = value;
    else if (host.startsWith('*.')) this.#wildcards.set(host.slice(1), value);
    else this.#exact.set(host, value);
  }

  delete(host: string): void {
    if (host === '*') this.#every = undefined;
    else if (host.startsWith('*.')) this.#wildcards.delete(host.slice(1));
    else this.#exact.delete(host);
  }

  /** Whether both have the same values for the same hosts. */
  equals(other: HostMap<Value>): boolean {
    return (
      this.#every === other.#every &&
      isSameMap(this.#wildcards, other.#wildcards) &&
      isSameMap(this.#exact, other.#exact)
    );
  }

  /** The value of that host or wildcard itself. */
  get(host: string): Value | undefined {
    if (host === '*') return this.#every;
    return host.startsWith('*.') ? this.#wildcards.get(host.slice(1)) : this.#exact.get(host);
  }

  /**
   * The value of the most specific host: the exact one, else the longest wildcard, which stands for
   * one or more labels, else `*`.
   */
  find(host: string): Value | undefined {
    const exact = this.#exact.get(host);
    if (exact !== undefined || this.#wildcards.size === 0) return exact ?? this.#every;
    for (let dot = host.indexOf('.', 1); dot !== -1; dot = host.indexOf('.', dot + 1)) {
      const value = this.#wildcards.get(host.slice(dot));
      if (value !== undefined) return value;
    }
    return this.#every;
  }
}

function isSameMap<Value>(one: ReadonlyMap<string, Value>, other: ReadonlyMap<string, Value>): boolean {
  if (one.size !== other.size) return false;
  for (const [key, value] of one) if (other.get(key) !== value) return false;
  return true;
}

const usualHost = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/;
const port = /:\d*$/;

/** The host of a request without its port, in lower case, and without a dot at the end. */
export function normalizeHost(host: string): string {
  if (usualHost.test(host)) return host;
  return host.toLowerCase().replace(port, '').replace(/\.$/, '');
}
