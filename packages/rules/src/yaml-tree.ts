import type { Steps } from '@tollgate/kit/steps';
import { getScalarValue, parseEvents, YAMLException } from 'js-yaml';
import { createPlaceFinder } from './place-finder.ts';
import type { Place } from './problem.ts';
import { parsePieces } from './yaml-pieces.ts';
import {
  createTableBuilder,
  plainFlag,
  type TableBuilder,
  type YamlKind,
  type YamlTable,
  yamlKind,
} from './yaml-table.ts';
import { countYamlTokens, firstYamlDocument, hasYamlContent } from './yaml-text.ts';

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
  /** Place of a node; for an empty one that of the node before it, which is its key or its list. */
  place(node: number): Place | undefined;
}

/** Why a text is not YAML that can be read. */
interface YamlError {
  readonly reason: string;
  readonly place: Place | undefined;
}

/** A tree, or why there is none. */
export type YamlResult =
  | {
      readonly ok: true;
      readonly tree: YamlTree;
      /** Where what is not read begins, if there is anything after the first document. */
      readonly ignoredFrom: Place | undefined;
    }
  | { readonly ok: false; readonly error: YamlError };

/** Longest text, in UTF-16 units: six times the 10 MB of 100,000 rules. */
const maxTextLength = 64 * 1024 * 1024;

/**
 * Most tokens of a text that is parsed at once, where each may cost an event of some 130 bytes. A file with a
 * top-level list of descriptors is parsed in pieces and may have more.
 */
const maxTokens = 4_000_000;

/** Deepest nesting of collections: keeps every recursion over the tree far from the end of the stack. */
export const maxDepth = 100;

/** Parses the first document of a text. */
export function* parseYaml(text: string): Steps<YamlResult> {
  if (text.length > maxTextLength)
    return failed(`the file has ${text.length} characters, more than ${maxTextLength}; split it`);
  const source = firstYamlDocument(text);
  try {
    const hasMore = source.length < text.length && hasYamlContent(text.slice(source.length));
    return yield* parseSource(source, hasMore);
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const position = error.mark?.position;
    return failed(error.reason, position === undefined ? undefined : createPlaceFinder(source)(position));
  }
}

const failed = (reason: string, place?: Place): YamlResult => ({ ok: false, error: { reason, place } });

function* parseSource(source: string, hasMore: boolean): Steps<YamlResult> {
  const pieces = createTableBuilder(source);
  if (yield* parsePieces(source, maxDepth, pieces.add)) return resultOf(pieces, source, hasMore);
  if (countYamlTokens(source, maxTokens) > maxTokens)
    return failed(`the file has more than ${maxTokens} YAML tokens; split it into several files`);
  const whole = createTableBuilder(source);
  whole.add({ events: parseEvents(source, { maxDepth }), offset: 0 });
  return resultOf(whole, source, hasMore);
}

function resultOf(builder: TableBuilder, source: string, hasMore: boolean): YamlResult {
  const findPlace = createPlaceFinder(source);
  const problem = builder.problem();
  if (problem !== undefined) return failed(problem.reason, findPlace(problem.offset));
  const ignoredFrom = hasMore ? findPlace(source.length) : undefined;
  return { ok: true, tree: makeTree(builder.table, source, findPlace), ignoredFrom };
}

/** Where a text starts the parser tells what is inside the quotes; people look for the quote. */
const isQuote = (code: number) => code === 34 || code === 39;

const kindMask = plainFlag - 1;

function makeTree(table: YamlTable, source: string, findPlace: (offset: number) => Place): YamlTree {
  const { size, kinds, starts, ends, encoded } = table;
  // The fallbacks are for numbers that are no node; the type checker cannot know that they do not occur.
  const kind = (node: number) => ((kinds[node] ?? 0) & kindMask) as YamlKind;
  const start = (node: number) => starts[node] ?? -1;
  const end = (node: number) => ends[node] ?? 0;
  const isCollection = (node: number) => kind(node) === yamlKind.mapping || kind(node) === yamlKind.sequence;
  return {
    size,
    kind,
    next: (node) => (isCollection(node) ? end(node) : node + 1),
    resolve: (node) => (kind(node) === yamlKind.alias ? end(node) : node),
    text(node) {
      if (kind(node) !== yamlKind.scalar || start(node) === -1) return '';
      const event = encoded.size === 0 ? undefined : encoded.get(node);
      return event === undefined ? source.slice(start(node), end(node)) : getScalarValue(source, event);
    },
    isPlain: (node) => ((kinds[node] ?? 0) & plainFlag) !== 0,
    place(node) {
      let placed = node;
      while (placed > 0 && start(placed) === -1) placed--;
      const offset = start(placed);
      return offset === -1
        ? undefined
        : findPlace(isQuote(source.charCodeAt(offset - 1)) ? offset - 1 : offset);
    },
  };
}
