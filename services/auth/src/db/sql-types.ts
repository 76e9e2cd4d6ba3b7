import type { Json } from '@tollgate/kit/json';

/**
 * A type of PostgreSQL, and the JavaScript type of its values. `null` and, for parameters,
 * `undefined` stand for SQL's null.
 */
export class SqlType<T> {
  /** Exists for the type checker only. */
  declare readonly value: T;
  readonly name: string;
  readonly nulls: 'none' | 'excluded' | 'allowed';

  constructor(name: string, nulls: 'none' | 'excluded' | 'allowed' = 'none') {
    this.name = name;
    this.nulls = nulls;
  }

  get orNull(): SqlType<T | null> {
    return new SqlType(this.name, 'allowed');
  }

  /** A condition of the statement selects rows in which the nullable column has a value. */
  get notNull(): SqlType<T> {
    return new SqlType(this.name, 'excluded');
  }

  /** The column has fewer values than its type. */
  as<U extends T>(): SqlType<U> {
    return new SqlType(this.name, this.nulls);
  }

  /** An array. */
  get list(): SqlType<readonly T[]> {
    return new SqlType(`${this.name}[]`);
  }
}

export const uuid = new SqlType<string>('uuid');
/** Also `varchar` and enums. */
export const text = new SqlType<string>('text');
export const boolean = new SqlType<boolean>('boolean');
/** Also `smallint`. */
export const integer = new SqlType<number>('integer');
/** The driver returns text. */
export const bigint = new SqlType<string>('bigint');
export const float = new SqlType<number>('double precision');
/** Also `timestamp` without a time zone: connections use UTC. */
export const timestamptz = new SqlType<Date>('timestamptz');
export const json = new SqlType<Json>('jsonb');
/** JSON that our own statements make. */
export function jsonOf<T>(): SqlType<T> {
  return new SqlType('jsonb');
}
export const bytea = new SqlType<Buffer>('bytea');

/** The columns of rows by name. */
export type Columns = Readonly<Record<string, SqlType<unknown>>>;

export type RowOf<C extends Columns> = { readonly [K in keyof C]: C[K]['value'] };
