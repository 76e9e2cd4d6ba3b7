import { channel } from 'node:diagnostics_channel';
import { type Query, type Queryable, query } from './connection.ts';
import type { Columns, RowOf, SqlType } from './sql-types.ts';

/** Text of a statement or of a part of one, with the parameters that it reads from values `V`. */
export interface Fragment<in V> {
  readonly pieces: readonly (string | Parameter<V>)[];
}

/** A value that a statement takes, written `$n`. One in several places is sent once. */
export class Parameter<in V> implements Fragment<V> {
  readonly type: SqlType<unknown>;
  readonly read: (values: V) => unknown;

  constructor(type: SqlType<unknown>, read: (values: V) => unknown) {
    this.type = type;
    this.read = read;
  }

  get pieces(): readonly [this] {
    return [this];
  }
}

/** A nullable parameter may be undefined, but not missing: that could be a spelling mistake. */
type ValueOf<T> = null extends T ? T | undefined : T;

/** Parameters of a type by the names of their values. */
export function parameters<T, const N extends string>(
  type: SqlType<T>,
  ...names: readonly N[]
): { readonly [K in N]: Parameter<{ readonly [_ in K]: ValueOf<T> }> } {
  const entries = names.map((name) => [
    name,
    new Parameter(type, (values: Readonly<Record<string, unknown>>) => values[name]),
  ]);
  // `fromEntries` does not keep the names.
  return Object.fromEntries(entries);
}

/** A parameter with a value that is known when the text is composed. */
export function bind<T>(type: SqlType<T>, value: T): Parameter<unknown> {
  return new Parameter(type, () => value);
}

/** All values that fragments read. */
export type ValuesOf<F extends readonly Fragment<never>[]> = F[number] extends Fragment<infer V> ? V : never;

/** SQL without parameters. Must be a constant, never a value of a request. */
export function raw(sql: string | number): Fragment<unknown> {
  return { pieces: [String(sql)] };
}

/** A part of statements. */
export function fragment<const F extends readonly Fragment<never>[]>(
  strings: TemplateStringsArray,
  ...parts: F
): Fragment<ValuesOf<F>> {
  const pieces = strings.flatMap((string, index) => [string, ...(parts[index]?.pieces ?? [])]);
  // The parameters are those of the parts: they read what the type says.
  return { pieces } as Fragment<unknown> as Fragment<ValuesOf<F>>;
}

/** The names of columns, for `select`. */
export function columnNames(columns: Columns, table?: string): Fragment<unknown> {
  const prefix = table === undefined ? '' : `${table}.`;
  return raw(
    Object.keys(columns)
      .map((name) => `${prefix}${name}`)
      .join(', '),
  );
}

export function join<V>(fragments: readonly Fragment<V>[], separator: string): Fragment<V> {
  return {
    pieces: fragments.flatMap(({ pieces }, index) => (index === 0 ? pieces : [separator, ...pieces])),
  };
}

/** Receives each statement when it is made, so that a test can compare all with the schema. */
export const statementChannel = channel('tollgate.auth.statement');

/** Receives {@link ReceivedRows}, so that tests can compare values with the declared columns. */
export const rowsChannel = channel('tollgate.auth.rows');

export interface ReceivedRows {
  readonly statement: Statement<never, unknown>;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/**
 * A statement with rows `R`. Its text is constant, so that each connection prepares it once.
 */
export class Statement<in V, out R> {
  readonly text: string;
  readonly parameters: readonly Parameter<V>[];
  readonly columns: Columns;
  /** Columns of outer joins: those of one are null together. */
  readonly outerColumns: readonly Columns[];

  constructor({ pieces }: Fragment<V>, columns: Columns, outerColumns: readonly Columns[]) {
    const positions = new Map<Parameter<V>, number>();
    this.text = pieces
      .map((piece) => {
        if (typeof piece === 'string') return piece;
        const position = positions.get(piece) ?? positions.size + 1;
        positions.set(piece, position);
        return `$${position}`;
      })
      .join('');
    this.parameters = [...positions.keys()];
    this.columns = columns;
    this.outerColumns = outerColumns;
    if (statementChannel.hasSubscribers) statementChannel.publish(this);
  }

  async run(sql: Queryable, values: V, send: Query = query): Promise<readonly R[]> {
    const rows = await send(sql, this.text, this.bind(values));
    if (rowsChannel.hasSubscribers) rowsChannel.publish({ statement: this, rows } satisfies ReceivedRows);
    // Parsed boundary: tests compare the columns of all statements with the schema, and all rows
    // with the columns.
    return rows as readonly object[] as readonly R[];
  }

  async first(sql: Queryable, values: V): Promise<R | undefined> {
    return (await this.run(sql, values))[0];
  }

  /** Whether there are rows. */
  async matches(sql: Queryable, values: V): Promise<boolean> {
    return (await this.run(sql, values)).length > 0;
  }

  /** The values in the order of their positions. */
  bind(values: V): unknown[] {
    return this.parameters.map(({ read }) => read(values) ?? null);
  }
}

/** A row of an outer join, or null in each column. */
type Joined<C extends Columns> = RowOf<C> | { readonly [K in keyof C]: null };

type OuterRows<O extends readonly Columns[]> = O extends readonly [
  infer First extends Columns,
  ...infer Others extends readonly Columns[],
]
  ? Joined<First> & OuterRows<Others>
  : unknown;

/**
 * Declares a statement by the columns of its rows, which are empty if only their number matters.
 * The columns of each outer join come after the others. Interpolate fragments and parameters:
 *
 *     const p = { ...parameters(uuid, 'id'), ...parameters(timestamptz, 'at') };
 *     const touch = statement({ tag: text.orNull })`
 *       update sessions set refreshed_at = ${p.at} where id = ${p.id} returning tag`;
 *     const [session] = await touch.run(sql, { id, at });
 */
export function statement<C extends Columns, const O extends readonly Columns[]>(columns: C, ...outer: O) {
  return <const F extends readonly Fragment<never>[]>(
    strings: TemplateStringsArray,
    ...parts: F
  ): Statement<ValuesOf<F>, RowOf<C> & OuterRows<O>> =>
    new Statement(fragment(strings, ...parts), columns, outer);
}

export type StatementRow<S> = S extends Statement<never, infer R> ? R : never;
