import type { Json, JsonObject } from '@tollgate/kit/json';

export type Operand =
  | { readonly kind: 'dot' }
  | { readonly kind: 'nil' }
  | { readonly kind: 'constant'; readonly value: string | boolean | number | bigint }
  | { readonly kind: 'field'; readonly names: readonly string[] }
  | { readonly kind: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly kind: 'function'; readonly name: string }
  | { readonly kind: 'pipeline'; readonly pipeline: Pipeline; readonly names: readonly string[] };

export interface Command {
  readonly operand: Operand;
  readonly args: readonly Operand[];
  readonly line: number;
}

/** Each command gets the result of the previous one as its last argument. */
export interface Pipeline {
  readonly commands: readonly Command[];
  /** Variables that are set to the result. */
  readonly variables: readonly string[];
  /** `=` rather than `:=`. */
  readonly assigns: boolean;
  readonly line: number;
}

export type Node =
  | { readonly kind: 'text'; readonly text: string; readonly line: number }
  | {
      readonly kind: 'output';
      readonly pipeline: Pipeline;
      /** Set by the analysis of HTML templates. */
      readonly escapers?: readonly EscaperName[];
      readonly line: number;
    }
  | BranchNode
  | {
      readonly kind: 'template';
      /** The analysis of HTML templates adds the context of the call. */
      readonly name: string;
      readonly pipeline: Pipeline | undefined;
      readonly line: number;
    }
  | { readonly kind: 'break' | 'continue'; readonly line: number };

/** Escapers of values in HTML, see escapers.ts. */
export type EscaperName =
  | 'htmlText'
  | 'htmlUnquoted'
  | 'htmlName'
  | 'urlFilter'
  | 'urlWhole'
  | 'urlPart'
  | 'srcset'
  | 'nothing'
  | 'html'
  | 'urlquery';

export interface BranchNode {
  readonly kind: 'if' | 'with' | 'range';
  readonly pipeline: Pipeline;
  readonly body: readonly Node[];
  readonly otherwise: readonly Node[] | undefined;
  readonly line: number;
}

/** Bodies by template name; the main template has the name ''. */
export type TemplateSet = ReadonlyMap<string, readonly Node[]>;

/** An invalid template, or one that cannot be rendered with its values. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';

  constructor(problem: string, line?: number) {
    super(line === undefined ? problem : `line ${line}: ${problem}`);
  }
}

/** Rendering failed; becomes a TemplateError with the line of the node. */
export class ExecutionError extends Error {
  override readonly name = 'ExecutionError';
}

/** A value has no safe escaping; becomes a TemplateError with the line of the node. */
export class ContextError extends Error {
  override readonly name = 'ContextError';
}

/** Bounds the stack of recursive functions. */
export const maxDepth = 100;

/**
 * A value in a template: JSON (numbers are float64 in Go), bigint for int, undefined for a missing
 * map key, null for nil.
 */
export type Value = Json | bigint | undefined;

export function isList(value: Value): value is readonly Json[] {
  return Array.isArray(value);
}

export function isMap(value: Value): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Ignores inherited members of the object. */
export function getMember(map: JsonObject, key: string): Value {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

/** The order is that in which Go prints maps and ranges over them. */
export function sortedKeys(map: JsonObject): readonly string[] {
  return Object.keys(map).toSorted((a, b) => (a < b ? -1 : Number(a > b)));
}

/** Go's truth: false, 0, nil and empty values are false. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0;
  if (isMap(value)) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** Name of a type in error messages and for `%T`. */
export function typeName(value: Value): string {
  if (value === undefined || value === null) return '<nil>';
  if (isList(value)) return '[]interface {}';
  if (isMap(value)) return 'map[string]interface {}';
  const names: Record<string, string> = { boolean: 'bool', number: 'float64', bigint: 'int' };
  return names[typeof value] ?? 'string';
}
