import { EVENT_ID, type Event, getScalarValue, parseEvents, SCALAR_STYLE, YAMLException } from 'js-yaml';
import type {
  Place,
  PlacedEntry,
  PlacedMapping,
  PlacedProblem,
  PlacedScalar,
  PlacedValue,
} from '../domain/authz/placed-value.ts';

/** The value of a YAML text, undefined when it is empty, or why there is none. */
export type ReadYaml =
  | { readonly ok: true; readonly value: PlacedValue | undefined }
  | { readonly ok: false; readonly problem: PlacedProblem };

/** Rules have four levels. */
const maxDepth = 16;

/** Thrown inside this file only; becomes a problem. */
class BadYaml extends Error {
  readonly place: Place;

  constructor(message: string, place: Place) {
    super(message);
    this.place = place;
  }
}

/** Reads one document of YAML with the place of each value. Aliases stand for what they name; tags and merge keys mean nothing here. */
export function readPlacedYaml(text: string): ReadYaml {
  const findPlace = placeFinder(text);
  try {
    const events = parseEvents(text, { maxDepth });
    return { ok: true, value: compose(text, events, findPlace) };
  } catch (error) {
    if (error instanceof BadYaml)
      return { ok: false, problem: { place: error.place, message: error.message } };
    if (!(error instanceof YAMLException)) throw error;
    const { mark, reason } = error;
    const place = mark === undefined ? undefined : findPlace(mark.position);
    return { ok: false, problem: { place, message: reason } };
  }
}

type NodeEvent = Exclude<Event, { type: typeof EVENT_ID.DOCUMENT | typeof EVENT_ID.POP }>;

function compose(
  text: string,
  events: readonly Event[],
  findPlace: (offset: number) => Place,
): PlacedValue | undefined {
  const anchors = new Map<string, PlacedValue>();
  let at = 0;
  /** Where the last value began: an empty one has no place of its own. */
  let last: Place = { line: 1, column: 1 };

  return document();

  function document(): PlacedValue | undefined {
    if (events.length === 0) return undefined;
    at++;
    const value = next()?.type === EVENT_ID.POP ? undefined : node();
    at++;
    if (at < events.length) throw new BadYaml('there is a second document: one is expected', last);
    return value;
  }

  function next(): Event | undefined {
    return events[at];
  }

  function node(): PlacedValue {
    const event = next();
    if (event === undefined || event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.POP)
      throw new TypeError('the parser answered a value without its end');
    at++;
    last = placeOf(event) ?? last;
    const place = last;
    if (event.type === EVENT_ID.ALIAS) return aliased(event, place);
    if (event.tagStart !== -1)
      throw new BadYaml('tags (!) are not supported: leave it out', findPlace(event.tagStart));
    const value = toValue(event, place);
    if (event.anchorStart !== -1) anchors.set(text.slice(event.anchorStart, event.anchorEnd), value);
    return value;
  }

  function toValue(event: Exclude<NodeEvent, { type: typeof EVENT_ID.ALIAS }>, place: Place): PlacedValue {
    if (event.type === EVENT_ID.MAPPING) return mapping(place);
    if (event.type === EVENT_ID.SEQUENCE) return { kind: 'list', place, items: [...untilEnd(node)] };
    const isEmpty = event.valueStart === -1;
    return {
      kind: 'scalar',
      place,
      text: isEmpty ? '' : getScalarValue(text, event),
      isPlain: isEmpty || event.style === SCALAR_STYLE.PLAIN,
    };
  }

  function mapping(place: Place): PlacedMapping {
    return { kind: 'mapping', place, entries: [...untilEnd(entry)] };
  }

  function entry(): PlacedEntry {
    const key = node();
    if (!isText(key)) throw new BadYaml('a key is a text', key.place);
    return { key: key.text, place: key.place, value: node() };
  }

  function* untilEnd<T>(read: () => T): Generator<T> {
    while (next()?.type !== EVENT_ID.POP) yield read();
    at++;
  }

  function aliased(event: Extract<NodeEvent, { type: typeof EVENT_ID.ALIAS }>, place: Place): PlacedValue {
    const name = text.slice(event.anchorStart, event.anchorEnd);
    // One inside of what it names is not known yet either.
    const value = anchors.get(name);
    if (value === undefined) throw new BadYaml(`*${name} names nothing that stands before it`, place);
    return { ...value, place };
  }

  function placeOf(event: NodeEvent): Place | undefined {
    const offset = startOf(event);
    return offset === -1 ? undefined : findPlace(offset);
  }
}

function isText(value: PlacedValue): value is PlacedScalar {
  return value.kind === 'scalar' && value.text !== '';
}

function startOf(event: NodeEvent): number {
  if (event.type === EVENT_ID.SCALAR)
    return isQuoted(event) && event.valueStart > 0 ? event.valueStart - 1 : event.valueStart;
  return event.type === EVENT_ID.ALIAS ? event.anchorStart - 1 : event.start;
}

/** The parser tells what is inside the quotes; people look for the quote. */
function isQuoted({ style }: Extract<NodeEvent, { type: typeof EVENT_ID.SCALAR }>): boolean {
  return style === SCALAR_STYLE.SINGLE_QUOTED || style === SCALAR_STYLE.DOUBLE_QUOTED;
}

/** Offsets of one text are looked up by the lines' beginnings, which are found once. */
function placeFinder(text: string): (offset: number) => Place {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}
