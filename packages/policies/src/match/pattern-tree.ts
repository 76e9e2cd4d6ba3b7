import type { PathPattern } from './path-pattern.ts';

interface Node {
  readonly children: Map<string, Node>;
  /** Name of the pattern for this path and everything below. */
  prefix: string | undefined;
  /** Names of patterns for exactly this path, by whether it has a slash at the end. */
  readonly exact: Map<boolean, string>;
}

const createNode = (): Node => ({ children: new Map(), prefix: undefined, exact: new Map() });

/**
 * Names of path patterns that have no wildcard and compare the case. A look-up takes as many steps
 * as the path has segments, whatever the number of patterns.
 */
export class PatternTree {
  readonly #root: Node = createNode();

  /** Regular expressions are left out: what they cover is not decided. */
  add(pattern: PathPattern, name: string): void {
    if (pattern.type === 'regex') return;
    let node = this.#root;
    for (const segment of pattern.segments) {
      const child = node.children.get(segment ?? '') ?? createNode();
      node.children.set(segment ?? '', child);
      node = child;
    }
    if (pattern.isPrefix) node.prefix ??= name;
    else node.exact.set(pattern.trailingSlash === true, name);
  }

  /** The name of a pattern that matches every path that `pattern` matches. */
  findCovering(pattern: PathPattern): string | undefined {
    let node: Node | undefined = this.#root;
    if (pattern.type === 'regex') return node.prefix;
    for (const segment of pattern.segments) {
      if (node.prefix !== undefined) return node.prefix;
      node = node.children.get(segment ?? '');
      if (node === undefined) return undefined;
    }
    return node.prefix ?? (pattern.isPrefix ? undefined : node.exact.get(pattern.trailingSlash === true));
  }
}
