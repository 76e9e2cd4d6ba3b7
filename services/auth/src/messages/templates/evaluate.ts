import type { Json, JsonObject } from '../../users/user-json.ts';
import { formatDefault } from './format.ts';
import { callFunction } from './functions.ts';
import { type Command, ExecutionError, type Operand, type Pipeline } from './syntax.ts';

/**
 * A value in a template: JSON (numbers are float64 in Go), bigint for int, undefined for a missing map
 * key, null for nil.
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

/** In the order in which Go prints maps and ranges over them. */
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

/** Go's fmt.Sprint: adds spaces between operands when neither is a string. */
export function printAll(values: readonly Value[]): string {
  let text = '';
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    if (index > 0 && typeof value !== 'string' && typeof before !== 'string') text += ' ';
    text += formatDefault(value);
  }
  return text;
}

/** Bounds texts that functions build from their own output. */
const maxTextLength = 2 * 1024 * 1024;

/** Variables, and the value of `.`. */
export class Scope {
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
export function evaluate(pipeline: Pipeline, scope: Scope): Value {
  const value = pipelineValue(pipeline, scope);
  for (const name of pipeline.variables) {
    if (pipeline.assigns) scope.assign(name, value);
    else scope.declare(name, value);
  }
  return value;
}

/** Evaluates a pipeline without setting its variables. @throws ExecutionError */
export function pipelineValue({ commands }: Pipeline, scope: Scope): Value {
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
