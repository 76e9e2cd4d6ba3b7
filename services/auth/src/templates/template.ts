import type { JsonObject } from '@tollgate/kit/json';
import { escapeHtml } from './escape.ts';
import { htmlEscapers, toText } from './escapers.ts';
import { callFunction } from './functions.ts';
import { parse } from './parser.ts';
import {
  type BranchNode,
  type Command,
  ExecutionError,
  getMember,
  isList,
  isMap,
  isTrue,
  type Node,
  type Operand,
  type Pipeline,
  sortedKeys,
  TemplateError,
  type TemplateSet,
  typeName,
  type Value,
} from './syntax.ts';

export interface Template {
  /** @throws TemplateError if the template does not fit the data, or the output is too long. */
  render(data: JsonObject): string;
}

/** Values in HTML are escaped by their context. */
export type TemplateForm = 'html' | 'text';

/** Mail programs cut off mails at about a tenth of this. */
const maxSourceChars = 1024 * 1024;
/** Bounds the memory of templates that repeat values set by users. */
const maxRenderedChars = 2 * 1024 * 1024;
/** Maximum of all loops together. */
const maxIterations = 10_000;
/** Depth of calls between templates. */
const maxCalls = 100;

/**
 * Parses a template of Go's html/template, which GoTrue uses. Values are escaped for text,
 * attributes, URLs, scripts and styles. Missing values are empty, also in plain text.
 *
 * @throws TemplateError
 */
export function parseTemplate(source: string, form: TemplateForm): Template {
  if (source.length > maxSourceChars) throw new TemplateError(`longer than ${maxSourceChars} characters`);
  return withStackLimit(() => {
    const parsed = parse(source);
    const templates = form === 'html' ? escapeHtml(parsed) : parsed;
    return { render: (data) => withStackLimit(() => new Rendering(templates, form).render(data)) };
  });
}

/** Nested templates and branches may overflow the stack. */
function withStackLimit<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof RangeError ? new TemplateError('nested too deep') : error;
  }
}

type Jump = 'break' | 'continue' | undefined;

/** One execution of a template. */
class Rendering {
  readonly #templates: TemplateSet;
  readonly #form: TemplateForm;
  readonly #parts: string[] = [];
  #chars = 0;
  #iterations = 0;
  #calls = 0;

  constructor(templates: TemplateSet, form: TemplateForm) {
    this.#templates = templates;
    this.#form = form;
  }

  render(data: JsonObject): string {
    this.#list(this.#templates.get('') ?? [], new Scope(data));
    return this.#parts.join('');
  }

  #write(text: string): void {
    this.#chars += text.length;
    if (this.#chars > maxRenderedChars)
      throw new TemplateError(`the mail is longer than ${maxRenderedChars} characters`);
    this.#parts.push(text);
  }

  #list(nodes: readonly Node[], scope: Scope): Jump {
    for (const node of nodes) {
      if (node.kind === 'text') {
        this.#write(node.text);
        continue;
      }
      const jump = located(node, () => this.#node(node, scope));
      if (jump !== undefined) return jump;
    }
    return undefined;
  }

  #node(node: Exclude<Node, { kind: 'text' }>, scope: Scope): Jump {
    switch (node.kind) {
      case 'output':
        this.#output(node, scope);
        return undefined;
      case 'template':
        this.#call(node.name, node.pipeline === undefined ? undefined : evaluate(node.pipeline, scope));
        return undefined;
      case 'range':
        return this.#range(node, scope);
      case 'if':
      case 'with': {
        const inner = new Scope(scope.dot, scope);
        const value = evaluate(node.pipeline, inner);
        if (!isTrue(value)) return this.#list(node.otherwise ?? [], inner);
        return this.#list(node.body, node.kind === 'with' ? new Scope(value, inner) : inner);
      }
      default:
        return node.kind;
    }
  }

  #output({ pipeline, escapers }: Extract<Node, { kind: 'output' }>, scope: Scope): void {
    let value = evaluate(pipeline, scope);
    if (pipeline.variables.length > 0) return;
    if (this.#form === 'html') {
      if (escapers === undefined) throw new TemplateError('output without escapers');
      for (const name of escapers) value = htmlEscapers[name].escape(value);
    }
    this.#write(toText(value));
  }

  #call(name: string, data: Value): void {
    this.#calls += 1;
    if (this.#calls > maxCalls)
      throw new TemplateError(`templates call each other more than ${maxCalls} times deep`);
    this.#list(this.#templates.get(name) ?? [], new Scope(data));
    this.#calls -= 1;
  }

  #range(node: BranchNode, scope: Scope): Jump {
    const outer = new Scope(scope.dot, scope);
    const value = pipelineValue(node.pipeline, outer);
    let isEmpty = true;
    for (const [key, element] of listElements(value)) {
      isEmpty = false;
      this.#iterations += 1;
      if (this.#iterations > maxIterations)
        throw new TemplateError(`loops take more than ${maxIterations} iterations`);
      const inner = new Scope(element, outer);
      setLoopVariables(node.pipeline, inner, key, element);
      if (this.#list(node.body, inner) === 'break') break;
    }
    return isEmpty ? this.#list(node.otherwise ?? [], outer) : undefined;
  }
}

/** Adds the line to execution errors. */
function located<T>(node: Node, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error;
    throw new TemplateError(error.message, node.line);
  }
}

function setLoopVariables(pipeline: Pipeline, scope: Scope, key: Value, element: Value): void {
  const { variables, assigns } = pipeline;
  const values = variables.length > 1 ? [key, element] : [element];
  for (const [index, name] of variables.entries()) {
    if (assigns) scope.assign(name, values[index]);
    else scope.declare(name, values[index]);
  }
}

function* listElements(value: Value): Generator<readonly [key: Value, element: Value]> {
  if (isList(value)) {
    for (const [index, element] of value.entries()) yield [BigInt(index), element];
  } else if (isMap(value)) {
    for (const key of sortedKeys(value)) yield [key, value[key]];
  } else if (typeof value === 'bigint') {
    for (let index = 0n; index < value; index++) yield [index, index];
  } else if (value !== undefined && value !== null) {
    throw new ExecutionError(`range can't iterate over ${typeName(value)}`);
  }
}

/** Bounds texts that functions build from their own output. */
const maxTextLength = 2 * 1024 * 1024;

/** Variables, and the value of `.`. */
class Scope {
  readonly dot: Value;
  readonly #variables = new Map<string, Value>();
  readonly #outer: Scope | undefined;

  constructor(dot: Value, outer?: Scope) {
    this.dot = dot;
    this.#outer = outer;
    if (outer === undefined) this.#variables.set('$', dot);
  }

  declare(name: string, value: Value): void {
    this.#variables.set(name, value);
  }

  assign(name: string, value: Value): void {
    const owner = this.#findOwner(name);
    if (owner === undefined) throw new ExecutionError(`undefined variable: ${name}`);
    owner.#variables.set(name, value);
  }

  get(name: string): Value {
    const owner = this.#findOwner(name);
    if (owner === undefined) throw new ExecutionError(`undefined variable: ${name}`);
    return owner.#variables.get(name);
  }

  #findOwner(name: string): Scope | undefined {
    if (this.#variables.has(name)) return this;
    return this.#outer === undefined ? undefined : this.#outer.#findOwner(name);
  }
}

/** Evaluates a pipeline, and sets its variables. @throws ExecutionError */
function evaluate(pipeline: Pipeline, scope: Scope): Value {
  const value = pipelineValue(pipeline, scope);
  for (const name of pipeline.variables) {
    if (pipeline.assigns) scope.assign(name, value);
    else scope.declare(name, value);
  }
  return value;
}

/** Evaluates a pipeline without setting its variables. @throws ExecutionError */
function pipelineValue({ commands }: Pipeline, scope: Scope): Value {
  let value: Value;
  for (const [index, command] of commands.entries()) value = run(command, scope, index === 0 ? [] : [value]);
  return value;
}

function run({ operand, args }: Command, scope: Scope, piped: readonly Value[]): Value {
  if (operand.kind !== 'function') {
    if (args.length > 0 || piped.length > 0) throw new ExecutionError("can't give argument to non-function");
    if (operand.kind === 'nil') throw new ExecutionError('nil is not a command');
    return operandValue(operand, scope);
  }
  const { name } = operand;
  const values =
    name === 'and' || name === 'or'
      ? evaluateUntilDecided(name, args, scope, piped)
      : [...args.map((arg) => operandValue(arg, scope)), ...piped];
  const result = callFunction(name, values);
  if (typeof result === 'string' && result.length > maxTextLength)
    throw new ExecutionError(`${name} makes more than ${maxTextLength} characters`);
  return result;
}

/** `and` and `or` stop at the operand that decides. */
function evaluateUntilDecided(
  name: 'and' | 'or',
  args: readonly Operand[],
  scope: Scope,
  piped: readonly Value[],
): readonly Value[] {
  const values: Value[] = [];
  for (const arg of args) {
    const value = operandValue(arg, scope);
    values.push(value);
    if (isTrue(value) === (name === 'or')) return values.slice(-1);
  }
  return [...values, ...piped].slice(-1);
}

function operandValue(operand: Operand, scope: Scope): Value {
  switch (operand.kind) {
    case 'dot':
      return scope.dot;
    case 'nil':
      return null;
    case 'constant':
      return operand.value;
    case 'field':
      return getFields(scope.dot, operand.names);
    case 'variable':
      return getFields(scope.get(operand.name), operand.names);
    case 'pipeline':
      return getFields(evaluate(operand.pipeline, scope), operand.names);
    case 'function':
      return callFunction(operand.name, []);
  }
}

function getFields(value: Value, names: readonly string[]): Value {
  return names.reduce<Value>((of, name) => {
    if (of === undefined) return undefined;
    if (isMap(of)) return getMember(of, name);
    if (of === null) throw new ExecutionError(`nil pointer evaluating interface {}.${name}`);
    throw new ExecutionError(`can't evaluate field ${name} in type ${typeName(of)}`);
  }, value);
}
