import {
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
  YAMLException,
} from 'js-yaml';
import { createPlaceFinder } from './place-finder.ts';
import type { Place } from './problem.ts';
import { countYamlTokens, firstYamlDocument } from './yaml-text.ts';

/** Kinds of a YAML node. */
export const yamlKind = { scalar: 1, sequence: 2, mapping: 3, alias: 4 } as const;
type YamlKind = (typeof yamlKind)[keyof typeof yamlKind];

/**
 * The first document of a YAML text as a flat table of nodes: a node is its number, its children are the nodes after
 * it up to `next(node)`, keys and values of a mapping in turn. A parser's event is ten times as big as a row of the
 * table, so the events are dropped before rules are built: that is what loads 100,000 rules in bounded memory.
 */
export interface YamlTree {
  /** Number of nodes; 0 for a text without a document. Node 0 is the root. */
  readonly size: number;
  kind(node: number): YamlKind;
  /** The first node that is neither `node` nor inside it. */
  next(node: number): number;
  /** The node itself, or the one an alias stands for; always an earlier, complete one. */
  resolve(node: number): number;
  /** Text of a scalar, unescaped and unfolded; empty for other kinds. */
  text(node: number): string;
  /** A scalar without quotes and `!!str`, whose type follows from its text. */
  isPlain(node: number): boolean;
  /** Place of a node; undefined for an empty one. */
  place(node: number): Place | undefined;
}

/** Why a text is not YAML that can be read. */
export interface YamlError {
  readonly reason: string;
  readonly place: Place | undefined;
}

/** Longest text, in UTF-16 units: six times the 10 MB of 100,000 rules. */
export const maxTextLength = 64 * 1024 * 1024;

/** Most tokens that may each cost a parser event of some 130 bytes; 100,000 rules of five lines have 1.1 million. */
export const maxTokens = 4_000_000;

/** Deepest nesting of collections: keeps every recursion over the tree far from the end of the stack. */
export const maxDepth = 100;

/** Parses the first document of a text. */
export function parseYaml(text: string): { ok: true; tree: YamlTree } | { ok: false; error: YamlError } {
  if (text.length > maxTextLength)
    return failed(`the file has ${text.length} characters, more than ${maxTextLength}; split it`);
  const source = firstYamlDocument(text);
  if (countYamlTokens(source, maxTokens) > maxTokens)
    return failed(`the file has more than ${maxTokens} YAML tokens; split it into several files`);
  try {
    return buildTree(source, parseEvents(source, { maxDepth }));
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const position = error.mark?.position;
    return failed(error.reason, position === undefined ? undefined : createPlaceFinder(source)(position));
  }
}

const failed = (reason: string, place?: Place) => ({ ok: false as const, error: { reason, place } });

/** Flag beside the kind of a scalar. */
const plainFlag = 8;
const kindMask = 7;

interface Table {
  readonly kinds: Uint8Array;
  /** Offset of the value (scalars) or of the collection; -1 for an empty scalar. */
  readonly starts: Int32Array;
  /** End offset of a scalar; the node an alias stands for. */
  readonly ends: Int32Array;
  readonly nexts: Int32Array;
  /** Scalars with escapes or line folds, which need the parser's decoder. */
  readonly encoded: Map<number, ScalarEvent>;
}

type TreeResult = ReturnType<typeof parseYaml>;

function buildTree(source: string, events: readonly Event[]): TreeResult {
  const size = countNodes(events);
  const table: Table = {
    kinds: new Uint8Array(size),
    starts: new Int32Array(size),
    ends: new Int32Array(size),
    nexts: new Int32Array(size),
    encoded: new Map(),
  };
  const findPlace = createPlaceFinder(source);
  const problem = fillTable(table, source, events);
  if (problem !== undefined) return failed(problem.reason, findPlace(problem.offset));
  return { ok: true, tree: makeTree(table, source, findPlace) };
}

function countNodes(events: readonly Event[]): number {
  let count = 0;
  for (const { type } of events) if (type !== EVENT_ID.POP && type !== EVENT_ID.DOCUMENT) count++;
  return count;
}

interface TableProblem {
  readonly reason: string;
  readonly offset: number;
}

const supportedTags: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'seq', 'map', 'timestamp', 'merge'].map((name) => `!!${name}`),
);

function fillTable(table: Table, source: string, events: readonly Event[]): TableProblem | undefined {
  const open: number[] = [];
  const anchors = new Map<string, number>();
  let node = 0;
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) continue;
    if (event.type === EVENT_ID.POP) {
      const closed = open.pop();
      if (closed !== undefined) table.nexts[closed] = node;
      continue;
    }
    table.nexts[node] = node + 1;
    if (event.type === EVENT_ID.ALIAS) {
      const name = source.slice(event.anchorStart, event.anchorEnd);
      const target = anchors.get(name);
      const offset = event.anchorStart - 1;
      if (target === undefined) return { reason: `unidentified alias "${name}"`, offset };
      if (open.includes(target)) return { reason: `alias "${name}" is inside what it stands for`, offset };
      table.kinds[node] = yamlKind.alias;
      table.starts[node] = offset;
      table.ends[node] = target;
      node++;
      continue;
    }
    if (event.anchorStart !== -1) anchors.set(source.slice(event.anchorStart, event.anchorEnd), node);
    const tag = event.tagStart === -1 ? '' : source.slice(event.tagStart, event.tagEnd);
    if (tag !== '' && tag !== '!' && !supportedTags.has(tag))
      return { reason: `tag ${tag} is not supported`, offset: event.tagStart };
    if (event.type === EVENT_ID.SCALAR) {
      const plain = tag === '' ? event.style === SCALAR_STYLE.PLAIN : tag !== '!' && tag !== '!!str';
      table.kinds[node] = yamlKind.scalar | (plain ? plainFlag : 0);
      table.starts[node] = event.valueStart;
      table.ends[node] = event.valueEnd;
      if (!event.fast && event.valueStart !== -1) table.encoded.set(node, event);
    } else {
      table.kinds[node] = event.type === EVENT_ID.MAPPING ? yamlKind.mapping : yamlKind.sequence;
      table.starts[node] = event.start;
      open.push(node);
    }
    node++;
  }
  return undefined;
}

function makeTree(table: Table, source: string, findPlace: (offset: number) => Place): YamlTree {
  const { kinds, starts, ends, nexts, encoded } = table;
  // The fallbacks are for numbers that are no node; the type checker cannot know that they do not occur.
  const kind = (node: number) => ((kinds[node] ?? 0) & kindMask) as YamlKind;
  const start = (node: number) => starts[node] ?? -1;
  return {
    size: kinds.length,
    kind,
    next: (node) => nexts[node] ?? kinds.length,
    resolve: (node) => (kind(node) === yamlKind.alias ? (ends[node] ?? 0) : node),
    text(node) {
      if (kind(node) !== yamlKind.scalar || start(node) === -1) return '';
      const event = encoded.size === 0 ? undefined : encoded.get(node);
      return event === undefined ? source.slice(start(node), ends[node]) : getScalarValue(source, event);
    },
    isPlain: (node) => ((kinds[node] ?? 0) & plainFlag) !== 0,
    place: (node) => (start(node) === -1 ? undefined : findPlace(start(node))),
  };
}
