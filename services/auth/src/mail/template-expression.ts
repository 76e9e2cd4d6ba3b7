import type { Json, JsonObject } from '../domain/json.ts';

/** What stands between `{{` and `}}`: the path of a variable, a text, or a function of such. */
export type Expression =
  | { readonly kind: 'path'; readonly names: readonly string[] }
  | { readonly kind: 'constant'; readonly value: Json }
  | { readonly kind: 'call'; readonly name: FunctionName; readonly of: readonly Expression[] };

const functions = {
  eq: ([first, ...others]: readonly Value[]) => others.some((other) => other === first),
  ne: ([first, second]: readonly Value[]) => first !== second,
  not: ([value]: readonly Value[]) => !isTrue(value),
  and: (values: readonly Value[]) => values.find((value) => !isTrue(value)) ?? values.at(-1),
  or: (values: readonly Value[]) => values.find(isTrue) ?? values.at(-1),
};

type FunctionName = keyof typeof functions;
type Value = Json | undefined;

const part = /\s*(?:(\.[\w.]*)|"([^"\\]*)"|(-?\d+(?:\.\d+)?)\b|(\w+)|([()]))/y;

/** Reads an expression; undefined for what is none. */
export function parseExpression(text: string): Expression | undefined {
  const parts = partsOf(text.trim());
  if (parts === undefined || parts.length === 0) return undefined;
  let at = 0;

  /** A function with all operands that follow, or one operand. */
  function whole(): Expression | undefined {
    const name = parts?.[at];
    if (name === undefined || !isFunctionName(name)) return operand();
    at++;
    const of: Expression[] = [];
    while (at < (parts?.length ?? 0) && parts?.[at] !== ')') {
      const next = operand();
      if (next === undefined) return undefined;
      of.push(next);
    }
    return of.length === 0 ? undefined : { kind: 'call', name, of };
  }

  function operand(): Expression | undefined {
    const next = parts?.[at++];
    if (next === '(') {
      const inner = whole();
      return parts?.[at++] === ')' ? inner : undefined;
    }
    return typeof next === 'object' ? next : undefined;
  }

  const parsed = whole();
  return at === parts.length ? parsed : undefined;
}

/** Words and brackets as text, operands read. */
function partsOf(text: string): readonly (string | Expression)[] | undefined {
  const parts: (string | Expression)[] = [];
  part.lastIndex = 0;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    if (match === null) return undefined;
    const [, path, string, number, word, bracket] = match;
    if (path !== undefined) parts.push({ kind: 'path', names: path.split('.').filter(Boolean) });
    else if (string !== undefined) parts.push({ kind: 'constant', value: string });
    else if (number !== undefined) parts.push({ kind: 'constant', value: Number(number) });
    else if (word === 'true' || word === 'false') parts.push({ kind: 'constant', value: word === 'true' });
    else parts.push(word ?? bracket ?? '');
  }
  return parts;
}

function isFunctionName(name: string | Expression): name is FunctionName {
  return typeof name === 'string' && Object.hasOwn(functions, name);
}

/** What an expression stands for; undefined for a variable that there is not. */
export function evaluate(expression: Expression, variables: JsonObject): Value {
  if (expression.kind === 'constant') return expression.value;
  if (expression.kind === 'call')
    return functions[expression.name](expression.of.map((operand) => evaluate(operand, variables)));
  return expression.names.reduce<Value>(memberOf, variables);
}

function memberOf(value: Value, name: string): Value {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  // What an object inherits is no variable.
  return Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined; // no list, as asked above
}

/** Empty values are false, as in Go. */
export function isTrue(value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}
