import { EVENT_ID, type Event, SCALAR_STYLE, type ScalarEvent } from 'js-yaml';
import type { EventPiece } from './yaml-pieces.ts';

/** Kinds of a YAML node. */
export const yamlKind = { scalar: 1, sequence: 2, mapping: 3, alias: 4 } as const;

/** One of `yamlKind`. */
export type YamlKind = (typeof yamlKind)[keyof typeof yamlKind];

/** Flag beside the kind of a scalar whose type follows from its text: no quotes, no `!!str`. */
export const plainFlag = 8;

/** Nodes of a document by their number, in the order of the text. */
export interface YamlTable {
  /** Number of nodes; the arrays may be longer. */
  size: number;
  /** Kind and flags. */
  kinds: Uint8Array;
  /** Offset of the scalar, collection or alias; -1 for an empty scalar. */
  starts: Int32Array;
  /** End offset of a scalar; the node an alias stands for; the node after all that is in a collection. */
  ends: Int32Array;
  /** Scalars with escapes or line folds, which need the parser's decoder. */
  readonly encoded: Map<number, ScalarEvent>;
}

/** What the parser accepts and we do not. */
interface TableProblem {
  readonly reason: string;
  readonly offset: number;
}

/** Most nodes of a file: 160 MB of table, and 14 times the nodes of 100,000 rules. */
const maxNodes = 16_000_000;

/** Fills a table from the events of a document, given in one or more pieces. */
export interface TableBuilder {
  readonly table: YamlTable;
  /** The first problem; later pieces are ignored once there is one. */
  problem(): TableProblem | undefined;
  add(piece: EventPiece): void;
}

/** Creates a builder. `source` is the whole text. */
export function createTableBuilder(source: string): TableBuilder {
  // Rule files have some ten characters a node; the arrays grow where that is wrong.
  const capacity = Math.ceil(source.length / 8) + 16;
  const table: YamlTable = {
    size: 0,
    kinds: new Uint8Array(capacity),
    starts: new Int32Array(capacity),
    ends: new Int32Array(capacity),
    encoded: new Map(),
  };
  const build: Build = { source, table, open: [], anchors: new Map(), problem: undefined };
  return {
    table,
    problem: () => build.problem,
    add({ events, offset }) {
      for (const event of events) {
        if (build.problem !== undefined) return;
        addEvent(build, event, offset);
      }
    },
  };
}

interface Build {
  readonly source: string;
  readonly table: YamlTable;
  /** Collections that have not ended. */
  readonly open: number[];
  readonly anchors: Map<string, number>;
  problem: TableProblem | undefined;
}

function addEvent(build: Build, event: Event, offset: number): void {
  const { table, open } = build;
  switch (event.type) {
    case EVENT_ID.DOCUMENT:
      return;
    case EVENT_ID.POP: {
      const closed = open.pop();
      if (closed !== undefined) table.ends[closed] = table.size;
      return;
    }
    case EVENT_ID.ALIAS:
      addAlias(build, event.anchorStart + offset, event.anchorEnd + offset);
      return;
    default:
      addNode(build, event, offset);
  }
}

function addAlias(build: Build, start: number, end: number): void {
  const name = build.source.slice(start, end);
  const target = build.anchors.get(name);
  if (target === undefined) build.problem = { reason: `unidentified alias "${name}"`, offset: start - 1 };
  else if (build.open.includes(target))
    build.problem = { reason: `alias "${name}" is inside what it stands for`, offset: start - 1 };
  else addRow(build, yamlKind.alias, start - 1, target);
}

type NodeEvent = Exclude<
  Event,
  { type: typeof EVENT_ID.DOCUMENT | typeof EVENT_ID.POP | typeof EVENT_ID.ALIAS }
>;

const supportedTags: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'seq', 'map', 'timestamp', 'merge'].map((name) => `!!${name}`),
);

function addNode(build: Build, event: NodeEvent, offset: number): void {
  const { source, table, anchors } = build;
  const tag = event.tagStart === -1 ? '' : source.slice(event.tagStart + offset, event.tagEnd + offset);
  if (tag !== '' && tag !== '!' && !supportedTags.has(tag)) {
    build.problem = { reason: `tag ${tag} is not supported`, offset: event.tagStart + offset };
    return;
  }
  if (event.anchorStart !== -1)
    anchors.set(source.slice(event.anchorStart + offset, event.anchorEnd + offset), table.size);
  if (event.type === EVENT_ID.SCALAR) {
    addScalar(build, event, tag, offset);
    return;
  }
  build.open.push(table.size);
  addRow(
    build,
    event.type === EVENT_ID.MAPPING ? yamlKind.mapping : yamlKind.sequence,
    event.start + offset,
    0,
  );
}

function addScalar(build: Build, event: ScalarEvent, tag: string, offset: number): void {
  const isPlain = tag === '' ? event.style === SCALAR_STYLE.PLAIN : tag !== '!' && tag !== '!!str';
  const kind = yamlKind.scalar | (isPlain ? plainFlag : 0);
  if (event.valueStart === -1) {
    addRow(build, kind, -1, -1);
    return;
  }
  const valueStart = event.valueStart + offset;
  const valueEnd = event.valueEnd + offset;
  if (!event.fast) build.table.encoded.set(build.table.size, { ...event, valueStart, valueEnd });
  addRow(build, kind, valueStart, valueEnd);
}

function addRow(build: Build, kind: number, start: number, end: number): void {
  const { table } = build;
  const node = table.size++;
  if (node >= maxNodes) {
    build.problem = { reason: `the file has more than ${maxNodes} YAML nodes; split it`, offset: start };
    return;
  }
  if (node >= table.kinds.length) grow(table);
  table.kinds[node] = kind;
  table.starts[node] = start;
  table.ends[node] = end;
}

function grow(table: YamlTable): void {
  const capacity = Math.ceil(table.kinds.length * 1.5);
  const { kinds, starts, ends } = table;
  table.kinds = new Uint8Array(capacity);
  table.kinds.set(kinds);
  table.starts = new Int32Array(capacity);
  table.starts.set(starts);
  table.ends = new Int32Array(capacity);
  table.ends.set(ends);
}
