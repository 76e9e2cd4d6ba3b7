import { getScalarValue, YAMLException } from 'js-yaml';
import { type NodeTable, plainFlag, type YamlKind, yamlKind } from './node-table.ts';

const kindMask = plainFlag - 1;

/** The parser gives the offset of the text inside the quotes; a position is that of the quote. */
const isQuote = (code: number) => code === 34 || code === 39;

/**
 * A YAML document as a flat table: a node is its number, and its children are the nodes after it up
 * to `next(node)`, keys and values of a mapping in turn. The flat form is what loads 100,000 rules
 * in bounded memory; `YamlNode` is easier to use where files are small.
 */
export class YamlTree {
  /** Number of nodes; 0 for a text without a document. Node 0 is the root. */
  readonly size: number;
  readonly #table: NodeTable;
  readonly #lines: LineIndex;

  constructor(table: NodeTable, lines: LineIndex) {
    this.size = table.size;
    this.#table = table;
    this.#lines = lines;
  }

  kind(node: number): YamlKind {
    return ((this.#table.kinds[node] ?? 0) & kindMask) as YamlKind; // only numbers of nodes come in
  }

  /** The first node that is neither `node` nor inside it. */
  next(node: number): number {
    const kind = this.kind(node);
    return kind === yamlKind.mapping || kind === yamlKind.sequence ? this.#end(node) : node + 1;
  }

  /** The node itself, or the one an alias refers to, which precedes the alias and is complete. */
  resolve(node: number): number {
    return this.kind(node) === yamlKind.alias ? this.#end(node) : node;
  }

  /** Text of a scalar, unescaped and unfolded; empty for other kinds. */
  text(node: number): string {
    const { source, encoded } = this.#table;
    const start = this.#start(node);
    if (start === -1 || this.kind(node) !== yamlKind.scalar) return '';
    const event = encoded.size === 0 ? undefined : encoded.get(node);
    return event === undefined ? source.slice(start, this.#end(node)) : getScalarValue(source, event);
  }

  /** Whether a node is a scalar without quotes and `!!str`, whose type follows from its text. */
  isPlain(node: number): boolean {
    return ((this.#table.kinds[node] ?? 0) & plainFlag) !== 0;
  }

  /** Position of a node; of an empty scalar, that of the node before it: its key or its list. */
  position(node: number): Position | undefined {
    let visible = node;
    while (visible > 0 && this.#start(visible) === -1) visible--;
    const offset = this.#start(visible);
    if (offset === -1) return undefined;
    const isQuoted = isQuote(this.#table.source.charCodeAt(offset - 1));
    return this.#lines.positionAt(isQuoted ? offset - 1 : offset);
  }

  #start(node: number): number {
    return this.#table.starts[node] ?? -1;
  }

  #end(node: number): number {
    return this.#table.ends[node] ?? 0;
  }
}

/** A key of a mapping with its value. */
interface YamlEntry {
  readonly key: YamlNode;
  readonly value: YamlNode;
}

/** A node of a tree. An alias has the content of the node it refers to, and its own position. */
export class YamlNode {
  readonly #tree: YamlTree;
  readonly #node: number;
  readonly #target: number;

  constructor(tree: YamlTree, node: number) {
    this.#tree = tree;
    this.#node = node;
    this.#target = tree.resolve(node);
  }

  get kind(): 'scalar' | 'list' | 'mapping' {
    const kind = this.#tree.kind(this.#target);
    if (kind === yamlKind.mapping) return 'mapping';
    return kind === yamlKind.sequence ? 'list' : 'scalar';
  }

  get position(): Position {
    return this.#tree.position(this.#node) ?? { line: 1, column: 1 };
  }

  /** Text of a scalar; empty for other kinds. */
  get text(): string {
    return this.#tree.text(this.#target);
  }

  /** A scalar without quotes, whose type follows from its text. */
  get isPlain(): boolean {
    return this.#tree.isPlain(this.#target);
  }

  /** Items of a list. */
  items(): YamlNode[] {
    return this.kind === 'list' ? this.#children() : [];
  }

  /** Entries of a mapping in the order of the text; a key may occur twice. */
  entries(): YamlEntry[] {
    if (this.kind !== 'mapping') return [];
    const children = this.#children();
    return children.flatMap((key, index) => {
      const value = children[index + 1];
      return index % 2 === 0 && value !== undefined ? [{ key, value }] : [];
    });
  }

  #children(): YamlNode[] {
    const children: YamlNode[] = [];
    const end = this.#tree.next(this.#target);
    for (let child = this.#target + 1; child < end; child = this.#tree.next(child))
      children.push(new YamlNode(this.#tree, child));
    return children;
  }
}

/** A position in a text. Line and column start at 1; columns count UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Converts offsets in a text to positions. Line breaks are located once, on first use. */
export class LineIndex {
  readonly #text: string;
  readonly #linesBefore: number;
  #starts: readonly number[] | undefined;

  /** @param linesBefore lines of the file that precede `text`. */
  constructor(text: string, linesBefore = 0) {
    this.#text = text;
    this.#linesBefore = linesBefore;
  }

  positionAt(offset: number): Position {
    this.#starts ??= lineStarts(this.#text);
    const line = lastAtMost(this.#starts, offset);
    return { line: this.#linesBefore + line + 1, column: offset - (this.#starts[line] ?? 0) + 1 };
  }
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** Index of the last number of an ascending list that does not exceed `limit`. */
function lastAtMost(ascending: readonly number[], limit: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((ascending[middle] ?? 0) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Why a text cannot be read. */
export interface YamlError {
  readonly reason: string;
  /** Undefined when the text as a whole is meant. */
  readonly position: Position | undefined;
}

/** A problem of a text that the parser accepts. */
export class YamlProblem extends Error {
  readonly position: Position;

  constructor(reason: string, position: Position) {
    super(reason);
    this.position = position;
  }
}

/** Converts what parsing threw. Rethrows anything that is not about the text. */
export function toYamlError(error: unknown, lines: LineIndex): YamlError {
  if (error instanceof YamlProblem) return { reason: error.message, position: error.position };
  if (!(error instanceof YAMLException)) throw error;
  const { mark, reason } = error;
  return { reason, position: mark === undefined ? undefined : lines.positionAt(mark.position) };
}
