import { EVENT_ID, type Event, SCALAR_STYLE, type ScalarEvent } from 'js-yaml';
import type { EventPiece } from './first-document.ts';

/** Kinds of a YAML node. */
export const yamlKind = { scalar: 1, sequence: 2, mapping: 3, alias: 4 } as const;

/** One of `yamlKind`. */
export type YamlKind = (typeof yamlKind)[keyof typeof yamlKind];

/** Flag beside the kind of a scalar whose type follows from its text: no quotes, no `!!str`. */
export const plainFlag = 8;

/** Problem of input that the parser accepts and the table does not. */
interface TableProblem {
  readonly reason: string;
  readonly offset: number;
}

/** Most nodes of a file: 160 MB of table, and 14 times the nodes of 100,000 rules. */
const maxNodes = 16_000_000;

type NodeEvent = Exclude<
  Event,
  { type: typeof EVENT_ID.DOCUMENT | typeof EVENT_ID.POP | typeof EVENT_ID.ALIAS }
>;

const supportedTags: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'seq', 'map', 'timestamp', 'merge'].map((name) => `!!${name}`),
);

/** Options of a table. */
export interface NodeTableOptions {
  /** Accepts the tags of the YAML 1.1 core types. Default true. */
  readonly tags?: boolean | undefined;
  /**
   * Expected number of nodes; the table grows beyond it. Default: an estimate from the length of
   * the text.
   */
  readonly capacity?: number;
}

/**
 * Nodes of one document by number, in the order of the text. Filled from the parser's events, in
 * one or more pieces. A row is a tenth of the size of an event.
 */
export class NodeTable {
  readonly source: string;
  /** Number of nodes; the arrays may be longer. */
  size = 0;
  /** Kind and flags. */
  kinds: Uint8Array;
  /** Offset of the scalar, collection or alias; -1 for an empty scalar. */
  starts: Int32Array;
  /**
   * End offset of a scalar; the node an alias refers to; the node after the last one inside a
   * collection.
   */
  ends: Int32Array;
  /** Scalars with escapes or line folds, which need the parser's decoder. */
  readonly encoded: Map<number, ScalarEvent> = new Map();
  /** The first problem; later events are ignored. */
  problem: TableProblem | undefined;
  readonly #tags: boolean;
  /** Collections that have not ended. */
  readonly #open: number[] = [];
  readonly #anchors = new Map<string, number>();

  /** @param source the whole text. */
  constructor(source: string, options: NodeTableOptions = {}) {
    // Rule files have about ten characters a node.
    const { tags = true, capacity = Math.ceil(source.length / 8) + 16 } = options;
    this.source = source;
    this.kinds = new Uint8Array(capacity);
    this.starts = new Int32Array(capacity);
    this.ends = new Int32Array(capacity);
    this.#tags = tags;
  }

  add({ events, offset }: EventPiece): void {
    for (const event of events) {
      if (this.problem !== undefined) return;
      this.#addEvent(event, offset);
    }
  }

  #addEvent(event: Event, offset: number): void {
    switch (event.type) {
      case EVENT_ID.DOCUMENT:
        return;
      case EVENT_ID.POP: {
        const closed = this.#open.pop();
        if (closed !== undefined) this.ends[closed] = this.size;
        return;
      }
      case EVENT_ID.ALIAS:
        this.#addAlias(event.anchorStart + offset, event.anchorEnd + offset);
        return;
      default:
        this.#addNode(event, offset);
    }
  }

  #addAlias(start: number, end: number): void {
    const name = this.source.slice(start, end);
    const target = this.#anchors.get(name);
    if (target === undefined) this.#fail(`unidentified alias "${name}"`, start - 1);
    else if (this.#open.includes(target)) this.#fail(`alias "${name}" is inside its own anchor`, start - 1);
    else this.#addRow(yamlKind.alias, start - 1, target);
  }

  #addNode(event: NodeEvent, offset: number): void {
    const tag =
      event.tagStart === -1 ? '' : this.source.slice(event.tagStart + offset, event.tagEnd + offset);
    const isSupported = tag === '' || (this.#tags && (tag === '!' || supportedTags.has(tag)));
    if (!isSupported) {
      this.#fail(`tag ${tag} is not supported`, event.tagStart + offset);
      return;
    }
    if (event.anchorStart !== -1)
      this.#anchors.set(this.source.slice(event.anchorStart + offset, event.anchorEnd + offset), this.size);
    if (event.type === EVENT_ID.SCALAR) {
      this.#addScalar(event, tag, offset);
      return;
    }
    this.#open.push(this.size);
    const kind = event.type === EVENT_ID.MAPPING ? yamlKind.mapping : yamlKind.sequence;
    this.#addRow(kind, event.start + offset, 0);
  }

  #addScalar(event: ScalarEvent, tag: string, offset: number): void {
    const isPlain = tag === '' ? event.style === SCALAR_STYLE.PLAIN : tag !== '!' && tag !== '!!str';
    const kind = yamlKind.scalar | (isPlain ? plainFlag : 0);
    if (event.valueStart === -1) {
      this.#addRow(kind, -1, -1);
      return;
    }
    const valueStart = event.valueStart + offset;
    const valueEnd = event.valueEnd + offset;
    if (!event.fast) this.encoded.set(this.size, { ...event, valueStart, valueEnd });
    this.#addRow(kind, valueStart, valueEnd);
  }

  #addRow(kind: number, start: number, end: number): void {
    const node = this.size++;
    if (node >= maxNodes) {
      this.#fail(`the file has more than ${maxNodes} YAML nodes; split it`, start);
      return;
    }
    if (node >= this.kinds.length) this.#grow();
    this.kinds[node] = kind;
    this.starts[node] = start;
    this.ends[node] = end;
  }

  #grow(): void {
    const capacity = Math.ceil(this.kinds.length * 1.5);
    const { kinds, starts, ends } = this;
    this.kinds = new Uint8Array(capacity);
    this.kinds.set(kinds);
    this.starts = new Int32Array(capacity);
    this.starts.set(starts);
    this.ends = new Int32Array(capacity);
    this.ends.set(ends);
  }

  #fail(reason: string, offset: number): void {
    this.problem = { reason, offset };
  }
}
