import type { Steps } from '@tollgate/kit/time';
import { COLLECTION_STYLE, EVENT_ID, type Event, parseEvents, YAMLException } from 'js-yaml';
import { NodeTable } from './node-table.ts';
import { LineIndex, type Position, toYamlError, type YamlError, YamlTree } from './tree.ts';

/** The tree of a first document, or why it cannot be read. */
export type FirstDocument =
  | {
      readonly ok: true;
      readonly tree: YamlTree;
      /** Start of the text that is not read; undefined when nothing follows the first document. */
      readonly ignoredFrom: Position | undefined;
    }
  | { readonly ok: false; readonly error: YamlError };

/** Longest text, in UTF-16 units: six times the 10 MB of 100,000 rules. */
const maxTextLength = 64 * 1024 * 1024;

/**
 * Most tokens of a text that is parsed in one piece, where each may cost an event of some 130
 * bytes. A file with a top-level list of descriptors is parsed in pieces and may have more.
 */
const maxTokens = 4_000_000;

/**
 * Deepest nesting of collections; keeps every recursion over the tree far from the end of the
 * stack.
 */
export const maxDepth = 100;

/** Parses the first document of a text that may be large. What follows it need not be YAML. */
export function* parseFirstDocument(text: string): Steps<FirstDocument> {
  if (text.length > maxTextLength)
    return failed(`the file has ${text.length} characters, more than ${maxTextLength}; split it`);
  const source = firstYamlDocument(text);
  const lines = new LineIndex(source);
  try {
    const table = yield* parseTable(source);
    if (table === undefined)
      return failed(`the file has more than ${maxTokens} YAML tokens; split it into several files`);
    const { problem } = table;
    if (problem !== undefined) return failed(problem.reason, lines.positionAt(problem.offset));
    const hasMore = source.length < text.length && hasYamlContent(text.slice(source.length));
    const ignoredFrom = hasMore ? lines.positionAt(source.length) : undefined;
    return { ok: true, tree: new YamlTree(table, lines), ignoredFrom };
  } catch (error) {
    return { ok: false, error: toYamlError(error, lines) };
  }
}

const failed = (reason: string, position?: Position): FirstDocument => ({
  ok: false,
  error: { reason, position },
});

/** Undefined for a text of more tokens than can be parsed in one piece. */
function* parseTable(source: string): Steps<NodeTable | undefined> {
  const pieces = new NodeTable(source);
  if (yield* parsePieces(source, maxDepth, (piece) => pieces.add(piece))) return pieces;
  if (countYamlTokens(source, maxTokens) > maxTokens) return undefined;
  const whole = new NodeTable(source);
  whole.add({ events: parseEvents(source, { maxDepth }), offset: 0 });
  return whole;
}

const documentMarker = /(?:^|[\n\r])(---|\.\.\.)(?=[ \t\r\n]|$)/g;

/** The text up to the start of a second document. */
function firstYamlDocument(text: string): string {
  let started = false;
  for (const match of text.matchAll(documentMarker)) {
    const marker = match[1] ?? '';
    const at = match.index + match[0].length - marker.length;
    if (started || marker === '...' || !isPreamble(text.slice(0, at))) return text.slice(0, at);
    started = true;
  }
  return text;
}

/** Whether lines are blank, comments or directives only, so that the document has not begun. */
const isPreamble = (text: string) => /^\uFEFF?(?:[ \t]*(?:[#%][^\n\r]*)?[\n\r]+)*$/.test(text);

/**
 * Whether a text that starts with a document marker has more than markers, comments and directives.
 */
const hasYamlContent = (text: string) =>
  /^(?:---[ \t]+[^\s#]|(?!(?:---|\.\.\.)(?:\s|$))[ \t]*[^\s#%])/m.test(text);

const comma = 44;
const dash = 45;
const colon = 58;
const question = 63;

/**
 * An upper bound of the collections and scalars in a text, found without parsing: each of them
 * needs a line end or an indicator of its own. Stops counting above `limit`.
 */
function countYamlTokens(text: string, limit: number): number {
  let count = 0;
  for (let i = 0; i < text.length && count <= limit; i++) {
    const code = text.charCodeAt(i);
    if (code === 10 || code === 13 || code === comma || code === colon || isBracket(code)) count++;
    else if ((code === dash || code === question) && text.charCodeAt(i + 1) <= 32) count++;
  }
  return count;
}

const isBracket = (code: number) => code === 91 || code === 93 || code === 123 || code === 125;

/** Events of a part of a text. */
export interface EventPiece {
  readonly events: readonly Event[];
  /** Where the part starts in the text: add it to every offset of the events. */
  readonly offset: number;
}

/**
 * Size of a part, in UTF-16 units; its events take about 15 times as much memory, and a
 * millisecond.
 */
const pieceLength = 32 * 1024;

/**
 * Parses a rule file piece by piece, one per step, so that the events of only one piece are in
 * memory at a time: those of 100,000 rules take 200 MB. `take` receives the events of the document
 * in order, as if it had been parsed at once.
 *
 * The text is cut between the items of a top-level `descriptors` list, at lines that start with a
 * dash in the column of the list's first item. YAML's indentation rule makes that safe: the content
 * of an item is indented further. Returns false when the text is small or of another shape, or when
 * a piece is not valid by itself: the caller must then discard what it received and parse the whole
 * text.
 */
export function* parsePieces(
  source: string,
  maxDepth: number,
  take: (piece: EventPiece) => void,
): Steps<boolean> {
  const list = source.length > 2 * pieceLength ? findList(source) : undefined;
  if (list === undefined) return false;
  yield;
  let start = 0;
  let end = nextItem(source, list, list.first + pieceLength);
  if (end === source.length) return false;
  while (start < source.length) {
    // The items of a later piece are one level less deep than in the whole text.
    const events = parseValid(source.slice(start, end), start === 0 ? maxDepth : maxDepth - 1);
    if (events === undefined) return false;
    const isLast = end === source.length;
    const inner = start === 0 ? openList(events, list.first) : listItems(events, list.column, isLast);
    if (inner === undefined) return false;
    take({ events: inner, offset: start });
    yield;
    start = end;
    end = nextItem(source, list, start + pieceLength);
  }
  return true;
}

/**
 * Events of a valid text; undefined otherwise, because parsing the whole text reports what is
 * wrong, and where.
 */
function parseValid(text: string, maxDepth: number): readonly Event[] | undefined {
  try {
    return parseEvents(text, { maxDepth });
  } catch (error) {
    if (error instanceof YAMLException) return undefined;
    throw error;
  }
}

interface List {
  /** Offset of the dash of the first item. */
  readonly first: number;
  /** Column of the dashes, from 0. */
  readonly column: number;
  /** Finds a line that starts an item. */
  readonly item: RegExp;
}

/** A `descriptors` key at the left edge whose value is a list on the following lines. */
function findList(source: string): List | undefined {
  const match = /(?:^|\n)descriptors:[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*( *)-[ \r\n]/.exec(
    source,
  );
  if (match === null) return undefined;
  const column = match[1]?.length ?? 0;
  const first = source.indexOf('-', match.index + match[0].length - 2);
  return { first, column, item: new RegExp(`\\n {${column}}-[ \\r\\n]`, 'g') };
}

/** Offset of the line of the first item at or after `from`, or the end of the text. */
function nextItem(source: string, { item }: List, from: number): number {
  item.lastIndex = from;
  const match = item.exec(source);
  return match === null ? source.length : match.index + 1;
}

/**
 * Events of the first piece without the end of its list and the collections around it;
 * undefined for another shape.
 */
function openList(events: readonly Event[], first: number): readonly Event[] | undefined {
  const ends = events.slice(-3);
  const isOpen = ends.length === 3 && ends.every(({ type }) => type === EVENT_ID.POP);
  const inner = events.slice(0, -3);
  return isOpen && events[1]?.type === EVENT_ID.MAPPING && isOpenAt(inner, first) ? inner : undefined;
}

/** Whether the events end inside the list that starts at an offset, and not deeper. */
function isOpenAt(events: readonly Event[], first: number): boolean {
  const open: Event[] = [];
  for (const event of events) {
    if (event.type === EVENT_ID.POP) open.pop();
    else if (event.type !== EVENT_ID.SCALAR && event.type !== EVENT_ID.ALIAS) open.push(event);
  }
  const list = open.at(-1);
  return (
    open.length === 3 &&
    list?.type === EVENT_ID.SEQUENCE &&
    list.start === first &&
    list.style === COLLECTION_STYLE.BLOCK
  );
}

/**
 * Events of the items of a later piece, which is a list by itself; the last one ends what the first
 * piece opened.
 */
function listItems(events: readonly Event[], column: number, isLast: boolean): readonly Event[] | undefined {
  const list = events[1];
  if (list?.type !== EVENT_ID.SEQUENCE || list.start !== column || list.anchorStart !== -1) return undefined;
  const items = events.slice(2, -2);
  return isLast ? [...items, ...closing] : items;
}

const closing: readonly Event[] = [{ type: EVENT_ID.POP }, { type: EVENT_ID.POP }, { type: EVENT_ID.POP }];
