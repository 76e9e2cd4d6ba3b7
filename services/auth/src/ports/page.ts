/** A part of a list: how many, after how many. */
export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}

/** The part, and how many there are in all. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
}
