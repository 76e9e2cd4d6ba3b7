/** What stands for a value in an action. */
export type Operand =
  | { readonly kind: 'dot' }
  | { readonly kind: 'nil' }
  | { readonly kind: 'constant'; readonly value: string | boolean | number | bigint }
  | { readonly kind: 'field'; readonly names: readonly string[] }
  | { readonly kind: 'variable'; readonly name: string; readonly names: readonly string[] }
  | { readonly kind: 'function'; readonly name: string }
  | { readonly kind: 'pipeline'; readonly pipeline: Pipeline; readonly names: readonly string[] };

/** An operand with arguments. */
export interface Command {
  readonly operand: Operand;
  readonly args: readonly Operand[];
  readonly line: number;
}

/** Commands, each of which gets the result of the one before as its last argument. */
export interface Pipeline {
  readonly commands: readonly Command[];
  /** Variables that get the result. */
  readonly variables: readonly string[];
  /** Whether the variables exist already (`=`) or are declared (`:=`). */
  readonly assigns: boolean;
  readonly line: number;
}

/** A node of a template. */
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

/** A node with a body, and another one for when there is nothing to do. */
export interface BranchNode {
  readonly kind: 'if' | 'with' | 'range';
  readonly pipeline: Pipeline;
  readonly body: readonly Node[];
  readonly otherwise: readonly Node[] | undefined;
  readonly line: number;
}

/** Bodies by template name; the template itself has the name ''. */
export type TemplateSet = ReadonlyMap<string, readonly Node[]>;
