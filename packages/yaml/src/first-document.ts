import type { Steps } from '@tollgate/kit/time';
import { parseEvents } from 'js-yaml';
import { NodeTable } from './node-table.ts';
import { parsePieces } from './pieces.ts';
import { LineIndex, type Position, toYamlError, type YamlError } from './position.ts';
import { YamlTree } from './tree.ts';

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
