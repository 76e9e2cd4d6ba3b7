import type { Place, PlacedScalar, PlacedValue } from './placed-value.ts';

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
