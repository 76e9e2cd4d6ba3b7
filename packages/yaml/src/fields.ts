import { parse, type YamlDocument } from './documents.ts';

/** The fields of a mapping, by name. */
export type Fields = Readonly<Record<string, unknown>>;

/** A value without the form that it must have. */
export class FieldProblem extends Error {
  /** JSON path, such as `mappings[0].name`. */
  readonly path: string;

  constructor(path: string, reason: string) {
    super(reason);
    this.path = path;
  }
}

export type ReadDocument<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

/**
 * Parses a text with one document, and reads its value. A problem of the text, or a `FieldProblem`
 * that `read` throws, is returned with its line.
 */
export function readDocument<T>(
  text: string,
  read: (value: unknown, lineOf: (path: string) => number) => T,
): ReadDocument<T> {
  const parsed = parse({ text, linesBefore: 0 });
  if (!parsed.ok) {
    const { position, reason } = parsed.error;
    return { ok: false, problem: position === undefined ? reason : `line ${position.line}: ${reason}` };
  }
  const [document] = parsed.documents;
  if (document === undefined) return { ok: false, problem: 'the file is empty' };
  return readValue(document, read);
}

function readValue<T>(
  document: YamlDocument,
  read: (value: unknown, lineOf: (path: string) => number) => T,
): ReadDocument<T> {
  const lineOf = (path: string): number => document.positionOf(path).line;
  try {
    return { ok: true, value: read(document.value, lineOf) };
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    return { ok: false, problem: `line ${lineOf(error.path)}: ${error.message}` };
  }
}

/** The fields of a mapping. With `known`, others are a problem. */
export function readFields(value: unknown, path: string, known?: ReadonlySet<string>): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new FieldProblem(path, `${path === '' ? 'the file' : path} must have fields`);
  }
  const fields = value as Fields;
  const unknown = known && Object.keys(fields).find((field) => !known.has(field));
  if (unknown !== undefined) {
    throw new FieldProblem(path === '' ? unknown : `${path}.${unknown}`, `unknown field ${unknown}`);
  }
  return fields;
}

/** A text that is not empty. */
export function readText(fields: Fields, field: string, path: string): string {
  const value = fields[field];
  if (typeof value === 'string' && value !== '') return value;
  throw new FieldProblem(`${path}.${field}`, `${field} must be text that is not empty`);
}

/** One of a few words; undefined when it is absent or empty. */
export function readWord<W extends string>(
  fields: Fields,
  field: string,
  path: string,
  words: readonly W[],
): W | undefined {
  const value = fields[field];
  if (value === undefined || value === '') return undefined;
  const word = words.find((candidate) => candidate === value);
  if (word !== undefined) return word;
  throw new FieldProblem(`${path}.${field}`, `${field} must be ${words.join(' or ')}`);
}

/** An unsigned 32-bit integer; undefined when it is absent. */
export function readUint32(fields: Fields, field: string, path: string): number | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff) {
    return value;
  }
  throw new FieldProblem(`${path}.${field}`, `${field} must be a whole number from 0 to 4294967295`);
}
