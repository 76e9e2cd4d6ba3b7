/** A place in a text: line and column, from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A value of a configuration file, and where it stands. */
export type PlacedValue = PlacedScalar | PlacedList | PlacedMapping;

/** A text, or what looks like another type. */
export interface PlacedScalar {
  readonly kind: 'scalar';
  readonly place: Place;
  readonly text: string;
  /** Without quotes, so that its type follows from the text. */
  readonly isPlain: boolean;
}

/** A list. */
export interface PlacedList {
  readonly kind: 'list';
  readonly place: Place;
  readonly items: readonly PlacedValue[];
}

/** Keys with values, in the order of the text; a key may come twice. */
export interface PlacedMapping {
  readonly kind: 'mapping';
  readonly place: Place;
  readonly entries: readonly PlacedEntry[];
}

/** A key with its value. */
export interface PlacedEntry {
  readonly key: string;
  readonly place: Place;
  readonly value: PlacedValue;
}

/** Something wrong at a place; undefined for the file as a whole. */
export interface PlacedProblem {
  readonly place: Place | undefined;
  readonly message: string;
}
