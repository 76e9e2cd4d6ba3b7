interface Candidate<T> {
  readonly order: number;
  readonly value: T;
  /** Sum of the literal parts; a shorter text cannot match. */
  readonly minLength: number;
  readonly prefixLength: number;
  readonly suffixLength: number;
  /** Literal parts between the first and the last `*`. */
  readonly middles: readonly string[];
}

interface Bucket<T> {
  /** The first `prefix*`. */
  open: Candidate<T> | undefined;
  /** All others, by the text after the last `*`, in order of adding. */
  readonly bySuffix: Map<string, Candidate<T>[]>;
  readonly suffixLengths: number[];
}

interface RadixNode<T> {
  label: string;
  children: Map<number, RadixNode<T>> | undefined;
  bucket: Bucket<T> | undefined;
}

/**
 * Finds the first of many glob patterns (`*` = any run of characters, anywhere, any number) that
 * matches a text. The literal part before the first `*` is looked up in a radix tree, the part
 * after the last `*` by its hash, so the cost depends on the text, not on the number of patterns;
 * only patterns that share both ends and differ in the middle are tried one by one.
 */
export class WildcardIndex<T> {
  readonly #root: RadixNode<T> = { label: '', children: undefined, bucket: undefined };
  #count = 0;

  /** The value of the earliest added pattern that matches the whole of `text`. */
  find(text: string): T | undefined {
    return findCandidate(this.#root, text)?.value;
  }

  /**
   * The value of the earliest added pattern of the form `prefix*` that matches every text starting
   * with `start`, with the number of patterns added before it.
   */
  findCovering(start: string): { readonly value: T; readonly order: number } | undefined {
    return findOpen(this.#root, start);
  }

  /** Adds a pattern, which must have at least one `*`. */
  add(pattern: string, value: T): void {
    const parts = pattern.split('*');
    const prefix = parts[0] ?? '';
    const suffix = parts.at(-1) ?? '';
    const candidate: Candidate<T> = {
      order: this.#count++,
      value,
      minLength: pattern.length - (parts.length - 1),
      prefixLength: prefix.length,
      suffixLength: suffix.length,
      middles: parts.slice(1, -1).filter((part) => part !== ''),
    };
    addToBucket(bucketFor(this.#root, prefix), candidate, suffix);
  }
}

function addToBucket<T>(bucket: Bucket<T>, candidate: Candidate<T>, suffix: string): void {
  if (suffix === '' && candidate.middles.length === 0) {
    bucket.open ??= candidate;
    return;
  }
  const list = bucket.bySuffix.get(suffix);
  if (list !== undefined) {
    list.push(candidate);
    return;
  }
  bucket.bySuffix.set(suffix, [candidate]);
  if (!bucket.suffixLengths.includes(suffix.length)) bucket.suffixLengths.push(suffix.length);
}

/** The bucket at the end of `prefix`, created with the tree nodes that lead to it. */
function bucketFor<T>(root: RadixNode<T>, prefix: string): Bucket<T> {
  let node = root;
  let position = 0;
  while (position < prefix.length) {
    node.children ??= new Map();
    const first = prefix.charCodeAt(position);
    const child = node.children.get(first);
    if (child === undefined) {
      const leaf: RadixNode<T> = { label: prefix.slice(position), children: undefined, bucket: undefined };
      node.children.set(first, leaf);
      node = leaf;
      break;
    }
    const shared = sharedLength(child.label, prefix, position);
    if (shared < child.label.length) split(child, shared);
    position += shared;
    node = child;
  }
  node.bucket ??= { open: undefined, bySuffix: new Map(), suffixLengths: [] };
  return node.bucket;
}

/**
 * Splits a node's label after `length` characters and moves its content to a new child with the
 * rest.
 */
function split<T>(node: RadixNode<T>, length: number): void {
  const rest: RadixNode<T> = {
    label: node.label.slice(length),
    children: node.children,
    bucket: node.bucket,
  };
  node.children = new Map([[rest.label.charCodeAt(0), rest]]);
  node.bucket = undefined;
  node.label = node.label.slice(0, length);
}

function sharedLength(label: string, text: string, position: number): number {
  let length = 0;
  while (length < label.length && label.charCodeAt(length) === text.charCodeAt(position + length)) length++;
  return length;
}

function findCandidate<T>(root: RadixNode<T>, text: string): Candidate<T> | undefined {
  let best: Candidate<T> | undefined;
  let position = 0;
  for (let node: RadixNode<T> | undefined = root; node !== undefined; node = childAt(node, text, position)) {
    position += node.label.length;
    if (node.bucket !== undefined) best = findInBucket(node.bucket, text, best);
  }
  return best;
}

/** The child whose label matches the text at `position`. */
function childAt<T>(node: RadixNode<T>, text: string, position: number): RadixNode<T> | undefined {
  const child = node.children?.get(text.charCodeAt(position));
  return child !== undefined && text.startsWith(child.label, position) ? child : undefined;
}

/** The earlier of `best` and the earliest pattern of the bucket that matches. */
function findInBucket<T>(
  bucket: Bucket<T>,
  text: string,
  best: Candidate<T> | undefined,
): Candidate<T> | undefined {
  let found = earlier(bucket.open, best);
  for (let i = 0; i < bucket.suffixLengths.length; i++) {
    const length = bucket.suffixLengths[i] ?? 0;
    if (length > text.length) continue;
    const candidates = bucket.bySuffix.get(length === 0 ? '' : text.slice(-length));
    if (candidates === undefined) continue;
    for (const candidate of candidates) {
      if (found !== undefined && candidate.order > found.order) break;
      if (matchesMiddle(candidate, text)) {
        found = candidate;
        break;
      }
    }
  }
  return found;
}

const earlier = <T>(a: Candidate<T> | undefined, b: Candidate<T> | undefined) =>
  a === undefined || (b !== undefined && b.order < a.order) ? b : a;

/**
 * Whether the parts between both ends, which match already, occur in order; the leftmost match of
 * each suffices.
 */
function matchesMiddle<T>(candidate: Candidate<T>, text: string): boolean {
  if (text.length < candidate.minLength) return false;
  const end = text.length - candidate.suffixLength;
  let position = candidate.prefixLength;
  for (const middle of candidate.middles) {
    const found = text.indexOf(middle, position);
    if (found === -1) return false;
    position = found + middle.length;
    if (position > end) return false;
  }
  return true;
}

function findOpen<T>(root: RadixNode<T>, start: string): { value: T; order: number } | undefined {
  let best: Candidate<T> | undefined;
  let position = 0;
  for (let node: RadixNode<T> | undefined = root; node !== undefined; node = childAt(node, start, position)) {
    position += node.label.length;
    best = earlier(node.bucket?.open, best);
  }
  return best && { value: best.value, order: best.order };
}
