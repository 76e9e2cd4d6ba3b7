import { escapeHtmlText, escapeJsText, escapeUrlQuery, toOperandText } from './escapers.ts';
import { printAll, printf } from './format.ts';
import { ExecutionError, getMember, isList, isMap, isTrue, typeName, type Value } from './syntax.ts';

interface BuiltIn {
  readonly minArgs: number;
  readonly maxArgs: number;
  readonly call: (args: readonly Value[]) => Value;
}

const all = Number.POSITIVE_INFINITY;

/** Functions of Go's text/template except `call`, as no value is a function. */
const functions: Readonly<Record<string, BuiltIn>> = {
  // Operands are evaluated in evaluate.ts.
  and: { minArgs: 1, maxArgs: all, call: (args) => args.find((arg) => !isTrue(arg)) ?? args.at(-1) },
  or: { minArgs: 1, maxArgs: all, call: (args) => args.find(isTrue) ?? args.at(-1) },
  not: { minArgs: 1, maxArgs: 1, call: ([arg]) => !isTrue(arg) },
  eq: { minArgs: 1, maxArgs: all, call: ([first, ...others]) => isEqualToAny(first, others) },
  ne: { minArgs: 2, maxArgs: 2, call: ([left, right]) => !isEqualToAny(left, [right]) },
  lt: { minArgs: 2, maxArgs: 2, call: ([left, right]) => isLess(left, right) },
  le: { minArgs: 2, maxArgs: 2, call: ([left, right]) => isLess(left, right) || isEqual(left, right) },
  gt: { minArgs: 2, maxArgs: 2, call: ([left, right]) => isLess(right, left) },
  ge: { minArgs: 2, maxArgs: 2, call: ([left, right]) => isLess(right, left) || isEqual(left, right) },
  len: { minArgs: 1, maxArgs: 1, call: ([arg]) => getLength(arg) },
  index: { minArgs: 1, maxArgs: all, call: ([arg, ...keys]) => keys.reduce(getElement, arg) },
  slice: { minArgs: 1, maxArgs: 4, call: ([arg, ...bounds]) => getSlice(arg, bounds) },
  print: { minArgs: 0, maxArgs: all, call: printAll },
  println: {
    minArgs: 0,
    maxArgs: all,
    call: (args) => `${args.map((arg) => printAll([arg])).join(' ')}\n`,
  },
  printf: { minArgs: 1, maxArgs: all, call: ([format, ...args]) => printf(asFormat(format), args) },
  html: { minArgs: 0, maxArgs: all, call: (args) => escapeHtmlText(toOperandText(args)) },
  js: { minArgs: 0, maxArgs: all, call: (args) => escapeJsText(toOperandText(args)) },
  urlquery: { minArgs: 0, maxArgs: all, call: (args) => escapeUrlQuery(toOperandText(args)) },
};

export function isFunctionName(name: string): boolean {
  return Object.hasOwn(functions, name);
}

/** Calls a function of templates. @throws ExecutionError */
export function callFunction(name: string, args: readonly Value[]): Value {
  const called = functions[name];
  if (called === undefined) throw new ExecutionError(`function ${JSON.stringify(name)} not defined`);
  if (args.length < called.minArgs || args.length > called.maxArgs)
    throw new ExecutionError(`wrong number of args for ${name}: got ${args.length}`);
  return called.call(args);
}

function asFormat(value: Value): string {
  if (typeof value === 'string') return value;
  throw new ExecutionError(`wrong type for value; expected string; got ${typeName(value)}`);
}

function isEqualToAny(first: Value, others: readonly Value[]): boolean {
  if (others.length === 0) throw new ExecutionError('error calling eq: missing argument for comparison');
  if (isList(first) || isMap(first))
    throw new ExecutionError(`error calling eq: non-comparable type ${typeName(first)}`);
  return others.some((other) => isEqual(first, other));
}

function isEqual(left: Value, right: Value): boolean {
  const isNil = (value: Value): boolean => value === undefined || value === null;
  if (isNil(left) || isNil(right)) return isNil(left) && isNil(right);
  if (typeof left !== typeof right || typeof right === 'object')
    throw new ExecutionError('incompatible types for comparison');
  return left === right;
}

function isLess(left: Value, right: Value): boolean {
  if (typeof left === 'string' && typeof right === 'string')
    return Buffer.compare(Buffer.from(left), Buffer.from(right)) < 0;
  const isNumber = typeof left === 'number' || typeof left === 'bigint';
  if (!isNumber && typeof left !== 'string') throw new ExecutionError('invalid type for comparison');
  if (typeof left !== typeof right) throw new ExecutionError('incompatible types for comparison');
  return isNumber && (left as number) < (right as number); // both bigint, or both number
}

function getLength(value: Value): bigint {
  if (typeof value === 'string') return BigInt(Buffer.byteLength(value));
  if (isList(value)) return BigInt(value.length);
  if (isMap(value)) return BigInt(Object.keys(value).length);
  throw new ExecutionError(`error calling len: len of type ${typeName(value)}`);
}

function getElement(value: Value, key: Value): Value {
  if (isMap(value)) {
    if (typeof key === 'string') return getMember(value, key);
    throw new ExecutionError(`error calling index: value has type ${typeName(key)}; should be string`);
  }
  if (!isList(value) && typeof value !== 'string')
    throw new ExecutionError(`error calling index: can't index item of type ${typeName(value)}`);
  const items = typeof value === 'string' ? [...Buffer.from(value)].map(BigInt) : value;
  return items[position(key, items.length - 1)];
}

function getSlice(value: Value, bounds: readonly Value[]): Value {
  if (isList(value)) {
    const [start, end] = sliceBounds(bounds, value.length);
    return value.slice(start, end);
  }
  if (typeof value !== 'string')
    throw new ExecutionError(`error calling slice: can't slice item of type ${typeName(value)}`);
  if (bounds.length > 2) throw new ExecutionError('error calling slice: cannot 3-index slice a string');
  const bytes = Buffer.from(value);
  const [start, end] = sliceBounds(bounds, bytes.length);
  return bytes.subarray(start, end).toString();
}

function sliceBounds(bounds: readonly Value[], length: number): readonly [number, number] {
  const [start = 0, end = length, max = length] = bounds.map((bound) => position(bound, length));
  if (start > end || end > max) throw new ExecutionError(`invalid slice index: ${start} > ${end}`);
  return [start, end];
}

function position(value: Value, max: number): number {
  if (typeof value !== 'bigint')
    throw new ExecutionError(`cannot index slice/array with type ${typeName(value)}`);
  if (value < 0n || value > BigInt(max)) throw new ExecutionError(`index out of range: ${value}`);
  return Number(value);
}
