import { callFunction } from './functions.ts';
import type { Command, Operand, Pipeline } from './syntax.ts';
import { ExecutionError, isMap, isTrue, memberOf, typeName, type Value } from './values.ts';

/** A text that a function makes is not longer: it may be made of itself again and again. */
const maxTextLength = 2 * 1024 * 1024;

/** Variables of a template, and what `.` is. */
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
    const owner = this.#ownerOf(name);
    if (owner === undefined) throw new ExecutionError(`undefined variable: ${name}`);
    owner.#variables.set(name, value);
  }

  get(name: string): Value {
    const owner = this.#ownerOf(name);
    if (owner === undefined) throw new ExecutionError(`undefined variable: ${name}`);
    return owner.#variables.get(name);
  }

  #ownerOf(name: string): Scope | undefined {
    if (this.#variables.has(name)) return this;
    return this.#outer === undefined ? undefined : this.#outer.#ownerOf(name);
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
      ? untilDecided(name, args, scope, piped)
      : [...args.map((arg) => operandValue(arg, scope)), ...piped];
  const result = callFunction(name, values);
  if (typeof result === 'string' && result.length > maxTextLength)
    throw new ExecutionError(`${name} makes more than ${maxTextLength} characters`);
  return result;
}

/** `and` and `or` do not evaluate what follows the operand that decides. */
function untilDecided(
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
      return fieldsOf(scope.dot, operand.names);
    case 'variable':
      return fieldsOf(scope.get(operand.name), operand.names);
    case 'pipeline':
      return fieldsOf(evaluate(operand.pipeline, scope), operand.names);
    case 'function':
      return callFunction(operand.name, []);
  }
}

function fieldsOf(value: Value, names: readonly string[]): Value {
  return names.reduce<Value>((of, name) => {
    if (of === undefined) return undefined;
    if (isMap(of)) return memberOf(of, name);
    if (of === null) throw new ExecutionError(`nil pointer evaluating interface {}.${name}`);
    throw new ExecutionError(`can't evaluate field ${name} in type ${typeName(of)}`);
  }, value);
}
