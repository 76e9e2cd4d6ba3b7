import { EVENT_ID, type Event, getScalarValue, parseEvents, SCALAR_STYLE, YAMLException } from 'js-yaml';

/** A place in a text: line and column, from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A value of a configuration file, and where it stands. */
export type PlacedValue = PlacedScalar | PlacedList | PlacedMapping;

/** A text, or what looks like another type. */
interface PlacedScalar {
  readonly kind: 'scalar';
  readonly place: Place;
  readonly text: string;
  /** Without quotes, so that its type follows from the text. */
  readonly isPlain: boolean;
}

/** A list. */
interface PlacedList {
  readonly kind: 'list';
  readonly place: Place;
  readonly items: readonly PlacedValue[];
}

/** Keys with values, in the order of the text; a key may come twice. */
interface PlacedMapping {
  readonly kind: 'mapping';
  readonly place: Place;
  readonly entries: readonly PlacedEntry[];
}

/** A key with its value. */
interface PlacedEntry {
  readonly key: string;
  readonly place: Place;
  readonly value: PlacedValue;
}

/** Something wrong at a place; undefined for the file as a whole. */
export interface PlacedProblem {
  readonly place: Place | undefined;
  readonly message: string;
}

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

/** Reads values of the wanted types. What is not one is reported, and answered with undefined. */
export interface FieldReader {
  /** The values of a mapping by their keys; unknown keys and those that come twice are reported. */
  fields<const K extends string>(value: PlacedValue, keys: readonly K[]): Partial<Record<K, PlacedValue>>;
  items(value: PlacedValue): readonly PlacedValue[];
  /** A list with at least one item, of those that could be read. */
  list<T>(value: PlacedValue, readItem: (item: PlacedValue) => T | undefined): T[];
  /** A text that is not empty. */
  text(value: PlacedValue): string | undefined;
  oneOf<const T extends string>(value: PlacedValue, allowed: readonly T[]): T | undefined;
  flag(value: PlacedValue): boolean | undefined;
}

/** What YAML, in one of its versions, takes for something else than text when it has no quotes. */
const otherType = /^(?:|~|null|true|false|y|n|yes|no|on|off|[-+.]*\d.*|[-+]?\.(?:inf|nan))$/i;

/** Makes a reader. */
export function createFieldReader(report: (place: Place, message: string) => void): FieldReader {
  const reader: FieldReader = {
    fields<const K extends string>(value: PlacedValue, keys: readonly K[]) {
      const found: Partial<Record<K, PlacedValue>> = {};
      if (value.kind !== 'mapping') {
        report(value.place, `expected keys and values (${keys.join(', ')}), found ${nameOf(value)}`);
        return found;
      }
      for (const { key, place, value: inner } of value.entries) {
        const known = keys.find((candidate) => candidate === key);
        if (known === undefined) report(place, `unknown key ${key}: there are ${keys.join(', ')}`);
        else if (found[known] !== undefined) report(place, `${key} is there twice`);
        else found[known] = inner;
      }
      return found;
    },
    items(value) {
      if (value.kind === 'list') return value.items;
      report(value.place, `expected a list, found ${nameOf(value)}`);
      return [];
    },
    list(value, readItem) {
      const items = reader.items(value);
      if (value.kind === 'list' && items.length === 0) report(value.place, 'the list is empty: leave it out');
      return items.flatMap((item) => readItem(item) ?? []);
    },
    text(value) {
      if (value.kind !== 'scalar' || value.text === '') {
        report(value.place, `expected a text, found ${nameOf(value)}`);
        return undefined;
      }
      if (!value.isPlain || !otherType.test(value.text)) return value.text;
      report(value.place, `put ${value.text} in quotes, as it is meant as text`);
      return undefined;
    },
    oneOf(value, allowed) {
      const text = value.kind === 'scalar' ? value.text : undefined;
      const known = allowed.find((candidate) => candidate === text);
      if (known === undefined)
        report(value.place, `expected one of ${allowed.join(', ')}, found ${nameOf(value)}`);
      return known;
    },
    flag(value) {
      if (isPlain(value, 'true')) return true;
      if (isPlain(value, 'false')) return false;
      report(value.place, `expected true or false, found ${nameOf(value)}`);
      return undefined;
    },
  };
  return reader;
}

function isPlain(value: PlacedValue, text: string): value is PlacedScalar {
  return value.kind === 'scalar' && value.isPlain && value.text === text;
}

function nameOf(value: PlacedValue): string {
  if (value.kind === 'list') return 'a list';
  if (value.kind === 'mapping') return 'keys and values';
  return value.text === '' ? 'nothing' : value.text;
}
