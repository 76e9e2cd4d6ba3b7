import { EVENT_ID, type Event, getScalarValue, parseEvents, SCALAR_STYLE, type ScalarEvent } from 'js-yaml';

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
