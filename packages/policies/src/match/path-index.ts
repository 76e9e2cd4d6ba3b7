import { foldCase, type PathPattern } from './path-pattern.ts';
import type { PathSegments } from './request-path.ts';

/** A path pattern with what it leads to. */
export interface PathEntry<Request, Value> {
  readonly pattern: PathPattern;
  /** Undefined: the path is enough. */
  readonly condition: ((request: Request) => boolean) | undefined;
  readonly value: Value;
}

/** Patterns that end at a node, by their position in the list. Most nodes have few of the parts. */
interface Node {
  children: Map<string, Node> | undefined;
  /** Child for any one segment. */
  anySegment: Node | undefined;
  /** Patterns for exactly this path. */
  exact: number[] | undefined;
  /** Patterns for this path and everything below. */
  prefixes: number[] | undefined;
}

const createNode = (): Node => ({
  children: undefined,
  anySegment: undefined,
  exact: undefined,
  prefixes: undefined,
});

const noPositions: readonly number[] = [];

/** The child for a segment, which is undefined for any one. */
function addChild(node: Node, segment: string | undefined): Node {
  if (segment === undefined) {
    node.anySegment ??= createNode();
    return node.anySegment;
  }
  node.children ??= new Map();
  const child = node.children.get(segment) ?? createNode();
  node.children.set(segment, child);
  return child;
}

/**
 * Finds the first pattern of a list that a request matches. A tree of segments finds the few
 * candidates, so that the time does not depend on the number of patterns.
 */
export class PathIndex<Request, Value> {
  readonly #entries: readonly PathEntry<Request, Value>[];
  readonly #root: Node = createNode();
  /** Patterns that ignore the case. */
  readonly #folded: Node | undefined;
  readonly #regexes: number[] = [];

  constructor(entries: readonly PathEntry<Request, Value>[]) {
    this.#entries = entries;
    const ignoresCase = ({ pattern }: PathEntry<Request, Value>) =>
      pattern.type === 'segments' && pattern.ignoreCase;
    this.#folded = entries.some(ignoresCase) ? createNode() : undefined;
    for (const [index, entry] of entries.entries()) this.#add(index, entry.pattern);
  }

  /** The value of the first pattern that matches. */
  find(request: Request, path: PathSegments): Value | undefined {
    const { segments } = path;
    const search: Search<Request> = { request, path, segments, best: this.#entries.length };
    this.#search(this.#root, search, 0);
    if (this.#folded !== undefined) {
      search.segments = segments.map(foldCase);
      this.#search(this.#folded, search, 0);
    }
    if (this.#regexes.length > 0) this.#searchRegexes(search);
    return this.#entries[search.best]?.value;
  }

  #add(index: number, pattern: PathPattern): void {
    if (pattern.type === 'regex') {
      this.#regexes.push(index);
      return;
    }
    let node = (pattern.ignoreCase ? this.#folded : undefined) ?? this.#root;
    for (const segment of pattern.segments) node = addChild(node, segment);
    const key = pattern.isPrefix ? 'prefixes' : 'exact';
    const known = node[key];
    if (known === undefined) node[key] = [index];
    else known.push(index);
  }

  /** Visits the nodes of the path: `depth` segments lead to this one. */
  #search(node: Node, search: Search<Request>, depth: number): void {
    const { segments } = search;
    this.#tryPatterns(node.prefixes, search);
    if (depth === segments.length) {
      this.#tryPatterns(node.exact, search);
      return;
    }
    const child = node.children?.get(segments[depth] ?? '');
    if (child !== undefined) this.#search(child, search, depth + 1);
    if (node.anySegment !== undefined) this.#search(node.anySegment, search, depth + 1);
  }

  #tryPatterns(positions: readonly number[] | undefined, search: Search<Request>): void {
    for (const position of positions ?? noPositions) {
      if (position >= search.best) return;
      const { pattern, condition } = this.#entries[position] ?? {};
      const slash = pattern?.type === 'segments' ? pattern.trailingSlash : undefined;
      if (slash !== undefined && slash !== search.path.hasTrailingSlash) continue;
      if (condition === undefined || condition(search.request)) search.best = position;
    }
  }

  #searchRegexes(search: Search<Request>): void {
    const text = pathText(search.path);
    for (const position of this.#regexes) {
      if (position >= search.best) return;
      const { pattern, condition } = this.#entries[position] ?? {};
      if (condition?.(search.request) === false) continue;
      if (pattern?.type === 'regex' && pattern.regex.testExact(text)) search.best = position;
    }
  }
}

interface Search<Request> {
  readonly request: Request;
  readonly path: PathSegments;
  /** Lower case for patterns that ignore the case. */
  segments: readonly string[];
  /** Lowest position of a pattern that matches; the length of the list without one. */
  best: number;
}

/** The path in canonical form. */
function pathText({ segments, hasTrailingSlash }: PathSegments): string {
  return `/${segments.join('/')}${hasTrailingSlash ? '/' : ''}`;
}
