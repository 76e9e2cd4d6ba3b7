import { createPlaceFinder } from '@tollgate/rules/place-finder';
import { isNullText, parseBoolean, parseFloatText, parseInteger } from '@tollgate/rules/yaml-scalar';
import {
  CORE_SCHEMA,
  EVENT_ID,
  type Event,
  getScalarValue,
  load,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
} from 'js-yaml';

/** A part of a YAML text that begins where a document begins. */
export interface YamlPart {
  readonly text: string;
  /** Lines before it. */
  readonly linesBefore: number;
}

/** No value of a document, not even one over several lines, may have such a line in it. */
const documentStart = /^---(?=[ \t\r\n]|$)/gm;

/** A directive belongs to the document after it, which begins at the next `---`. */
const directive = /^%/m;

/**
 * Cuts a text into its documents, so that a file of thousands is not parsed at one go. A text with directives is left
 * whole.
 */
export function splitDocuments(text: string): YamlPart[] {
  if (directive.test(text)) return [{ text, linesBefore: 0 }];
  const starts = [0, ...[...text.matchAll(documentStart)].map(({ index }) => index), text.length];
  const parts: YamlPart[] = [];
  let linesBefore = 0;
  for (const [index, start] of starts.slice(0, -1).entries()) {
    const part = text.slice(start, starts[index + 1]);
    parts.push({ text: part, linesBefore });
    linesBefore += part.split('\n').length - 1;
  }
  return parts;
}

/** A value in a YAML text, or the key of one. */
export interface YamlNode {
  /** Number of the document in the text, from 0; empty ones count. */
  readonly document: number;
  /** Offset of the key that the value belongs to, or of the item of a list. */
  readonly offset: number;
  /** Text of a scalar that is not in quotes, and whose type follows from it; undefined for all else. */
  readonly plain: string | undefined;
  /** JSON path in the document, such as `spec.descriptors[0].key`; made when asked for, while the node is visited. */
  path(): string;
}

/** A collection that has not ended. */
interface Frame {
  readonly isMapping: boolean;
  /** The next node of a mapping is a key. */
  atKey: boolean;
  key: string;
  keyOffset: number;
  index: number;
}

/**
 * Visits keys and values of all documents of a text, in its order. The text has been parsed before, so that its form is
 * right. What an alias stands for is visited where it is written, not where it is used.
 */
export function visitYamlNodes(text: string, visit: (node: YamlNode) => void): void {
  const frames: Frame[] = [];
  let document = -1;
  const path = (): string => pathOf(frames);

  function enter(event: Exclude<Event, { type: 1 | 6 }>): void {
    const frame = frames.at(-1);
    const plain = event.type === EVENT_ID.SCALAR ? plainText(text, event) : undefined;
    const start = startOf(event);
    if (frame?.isMapping === true && frame.atKey) {
      frame.atKey = false;
      frame.key = event.type === EVENT_ID.SCALAR ? getScalarValue(text, event) : '?';
      frame.keyOffset = start;
    } else if (frame?.isMapping === true) frame.atKey = true;
    else if (frame !== undefined) frame.index += 1;
    const offset = frame?.isMapping === true ? frame.keyOffset : start;
    visit({ document, offset, plain, path });
  }

  for (const event of parseEvents(text, {})) {
    if (event.type === EVENT_ID.DOCUMENT) document += 1;
    // The end of a document ends no collection.
    if (event.type === EVENT_ID.POP) frames.pop();
    if (event.type === EVENT_ID.DOCUMENT) frames.push(documentFrame());
    if (event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.POP) continue;
    enter(event);
    if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE)
      frames.push({ ...documentFrame(), isMapping: event.type === EVENT_ID.MAPPING });
  }
}

const documentFrame = (): Frame => ({ isMapping: false, atKey: true, key: '', keyOffset: 0, index: -1 });

function startOf(event: Exclude<Event, { type: 1 | 6 }>): number {
  if (event.type === EVENT_ID.SCALAR) return event.valueStart;
  return event.type === EVENT_ID.ALIAS ? event.anchorStart : event.start;
}

function plainText(text: string, event: ScalarEvent): string | undefined {
  if (event.style !== SCALAR_STYLE.PLAIN || event.valueStart === -1) return undefined;
  const tag = event.tagStart === -1 ? '' : text.slice(event.tagStart, event.tagEnd);
  return tag === '!' || tag === '!!str' ? undefined : getScalarValue(text, event);
}

/** The first frame is that of the document, which adds nothing. */
function pathOf(frames: readonly Frame[]): string {
  let path = '';
  for (const { isMapping, key, index } of frames.slice(1))
    path += isMapping ? `${path === '' ? '' : '.'}${key}` : `[${index}]`;
  return path;
}

/** A scalar that YAML 1.2, which is read here, and YAML 1.1, which kubectl reads, take for different values. */
export interface AmbiguousScalar {
  /** Number of the document in the part, from 0. */
  readonly document: number;
  readonly line: number;
  readonly column: number;
  /** JSON path in the document. */
  readonly path: string;
  /** What is wrong with it and what to write instead. */
  readonly message: string;
}

/** Most of one part: a person corrects a few and tries again. */
const maxAmbiguous = 100;

/**
 * Finds the scalars that kubectl would take for something else: a limit of `0100` must not be 100 in a folder and 64 in
 * a cluster.
 */
export function findAmbiguousScalars({ text, linesBefore }: YamlPart): readonly AmbiguousScalar[] {
  const found: AmbiguousScalar[] = [];
  const findPlace = createPlaceFinder(text);
  visitYamlNodes(text, ({ document, offset, plain, path }) => {
    const message = plain === undefined || found.length === maxAmbiguous ? undefined : ambiguityOf(plain);
    if (message === undefined) return;
    const { line = 1, column = 1 } = findPlace(offset);
    found.push({ document, line: linesBefore + line, column, path: path(), message });
  });
  return found;
}

/** What nearly all scalars are: names that mean nothing else, and numbers without a leading zero. */
const isPlainly = /^(?:[1-9][0-9]{0,14}|0|true|false|null)$|^(?![yYnNoOtTfF][a-zA-Z]{0,4}$)[a-zA-Z/*_]/;

function ambiguityOf(text: string): string | undefined {
  // Of what has white space in it both make text.
  if (isPlainly.test(text) || /\s/.test(text) || text === '<<') return undefined;
  const here = asReadHere(text);
  const there = asKubectlReads(text);
  if (Object.is(here, there) || here === there) return undefined;
  const advice =
    typeof here === 'string' ? `put it in quotes, or write ${String(there)}` : `write ${String(here)}`;
  return `${text} is ${nameOf(here)} here and ${nameOf(there)} for kubectl: ${advice}`;
}

/** As an item, so that nothing in the text can be taken for a marker. */
function asReadHere(text: string): unknown {
  const items: unknown = load(`- ${text}`, { schema: CORE_SCHEMA });
  return Array.isArray(items) ? items[0] : items;
}

function asKubectlReads(text: string): unknown {
  if (isNullText(text)) return null;
  return parseBoolean(text) ?? parseInteger(text) ?? parseFloatText(text) ?? text;
}

const nameOf = (value: unknown): string => (typeof value === 'string' ? 'text' : String(value));
