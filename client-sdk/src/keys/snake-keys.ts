type Upper =
  | 'A'
  | 'B'
  | 'C'
  | 'D'
  | 'E'
  | 'F'
  | 'G'
  | 'H'
  | 'I'
  | 'J'
  | 'K'
  | 'L'
  | 'M'
  | 'N'
  | 'O'
  | 'P'
  | 'Q'
  | 'R'
  | 'S'
  | 'T'
  | 'U'
  | 'V'
  | 'W'
  | 'X'
  | 'Y'
  | 'Z';
type Separator = '-' | ' ' | '_';

/** The state of the scan: what the last character was. */
type Last = 'start' | 'upper' | 'other' | 'separator';

/** A capital begins a word after a small letter, and at the end of a run of capitals (`HTTPServer`). */
type Break<L extends Last, Next extends string> = L extends 'other'
  ? '_'
  : L extends 'upper'
    ? Next extends `${infer N}${string}`
      ? N extends Upper | Separator | Digit
        ? ''
        : '_'
      : ''
    : '';
type Digit = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9';

type Scan<S extends string, L extends Last> = S extends `${infer C}${infer Rest}`
  ? C extends Separator
    ? L extends 'separator'
      ? Scan<Rest, 'separator'>
      : `_${Scan<Rest, 'separator'>}`
    : C extends Upper
      ? `${Break<L, Rest>}${Lowercase<C>}${Scan<Rest, 'upper'>}`
      : `${C}${Scan<Rest, 'other'>}`
  : '';

/** The type of a key in snake_case: `SnakeCase<'accessToken'>` is `'access_token'`. */
export type SnakeCase<S extends string> = string extends S ? string : Scan<S, 'start'>;

/** The type of a parsed object whose keys were converted: `SnakeKeys<{ accessToken: string }>` has `access_token`. */
export type SnakeKeys<T> = T extends (...args: never) => unknown
  ? T
  : T extends readonly (infer Item)[]
    ? readonly SnakeKeys<Item>[]
    : T extends object
      ? { readonly [K in keyof T as K extends string ? SnakeCase<K> : K]: SnakeKeys<T[K]> }
      : T;
