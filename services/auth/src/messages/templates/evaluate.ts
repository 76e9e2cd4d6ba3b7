import { callFunction } from './functions.ts';
import { type Command, ExecutionError, type Operand, type Pipeline } from './syntax.ts';
import { getMember, isMap, isTrue, typeName, type Value } from './values.ts';

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
