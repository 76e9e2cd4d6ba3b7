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
  | { readonly kind: 'output'; readonly pipeline: Pipeline; readonly line: number }
  | BranchNode
  | {
      readonly kind: 'template';
      readonly name: string;
      readonly pipeline: Pipeline | undefined;
      readonly line: number;
    }
  | { readonly kind: 'break' | 'continue'; readonly line: number };

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
