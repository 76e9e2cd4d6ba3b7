import { type ClaimPath, parseClaimPath, valueAt } from './claim-path.ts';

/**
 * A condition on claims, of `kinds` in the routes file:
 *
 *     azp != '' && (typ == 'Bearer' || 'service' in realm_access.roles)
 *
 * Operands are claims (as in `claims`), texts in quotes, numbers, `true` and `false`. A claim that
 * is absent equals `''`. `==` and `!=` compare, `^=` tests the beginning of a text, `in` searches a
 * list; a claim alone is true unless it is absent, empty or `false`.
 */
export type Predicate = (claims: unknown) => boolean;

type ParsedPredicate =
  | { readonly ok: true; readonly predicate: Predicate }
  | { readonly ok: false; readonly reason: string };

const maxChars = 512;
const maxDepth = 16;

class InvalidPredicate extends Error {}

/** Parses a condition. It is compiled to closures; nothing is evaluated as code. */
export function parsePredicate(text: string): ParsedPredicate {
  if (text.length > maxChars) return { ok: false, reason: `it is longer than ${maxChars} characters` };
  try {
    return { ok: true, predicate: new Parser(text).parse() };
  } catch (error) {
    if (error instanceof InvalidPredicate) return { ok: false, reason: error.message };
    throw error;
  }
}

type Operand = (claims: unknown) => unknown;

const token =
  /\s*(?:(&&|\|\||==|!=|\^=|[!()])|'([^']*)'|(-?\d+(?:\.\d+)?(?![\w.]))|((?:[\w$@:/-]|\.(?=[\w$@:/-])|\[\d{1,4}\]|\["[^"\\]+"\])+))/y;

interface Token {
  readonly operator?: string;
  readonly text?: string;
  readonly number?: number;
  readonly word?: string;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#tokens = tokenize(source);
  }

  parse(): Predicate {
    const predicate = this.#readOr();
    if (this.#at < this.#tokens.length) throw new InvalidPredicate(`unexpected ${this.#describe()}`);
    return predicate;
  }

  #readOr(): Predicate {
    let left = this.#readAnd();
    while (this.#skip('||')) {
      const [first, second] = [left, this.#readAnd()];
      left = (claims) => first(claims) || second(claims);
    }
    return left;
  }

  #readAnd(): Predicate {
    let left = this.#readNot();
    while (this.#skip('&&')) {
      const [first, second] = [left, this.#readNot()];
      left = (claims) => first(claims) && second(claims);
    }
    return left;
  }

  #readNot(): Predicate {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new InvalidPredicate(`it is nested more than ${maxDepth} times`);
    const predicate = this.#readUnary();
    this.#depth -= 1;
    return predicate;
  }

  #readUnary(): Predicate {
    if (this.#skip('!')) {
      const negated = this.#readNot();
      return (claims) => !negated(claims);
    }
    if (!this.#skip('(')) return this.#readComparison();
    const inner = this.#readOr();
    if (!this.#skip(')')) throw new InvalidPredicate(`expected ) instead of ${this.#describe()}`);
    return inner;
  }

  #readComparison(): Predicate {
    const left = this.#readOperand();
    if (this.#skip('==')) return this.#compare(left, equals);
    if (this.#skip('!=')) return this.#compare(left, (a, b) => !equals(a, b));
    if (this.#skip('^='))
      return this.#compare(left, (a, b) => typeof a === 'string' && typeof b === 'string' && a.startsWith(b));
    if (this.#tokens[this.#at]?.word !== 'in') return (claims) => !isEmpty(left(claims));
    this.#at += 1;
    return this.#compare(left, (a, b) => Array.isArray(b) && b.some((item) => equals(a, item)));
  }

  #compare(left: Operand, compare: (a: unknown, b: unknown) => boolean): Predicate {
    const right = this.#readOperand();
    return (claims) => compare(left(claims), right(claims));
  }

  #readOperand(): Operand {
    const { text, number, word } = this.#tokens[this.#at] ?? {};
    const constant = text ?? number ?? (word === 'true' || word === 'false' ? word === 'true' : undefined);
    if (constant === undefined && (word === undefined || word === 'in'))
      throw new InvalidPredicate(`expected a claim or a value instead of ${this.#describe()}`);
    this.#at += 1;
    if (constant !== undefined) return () => constant;
    const path = readPath(word ?? '');
    // An absent claim equals the empty text.
    return (claims) => valueAt(claims, path) ?? '';
  }

  #skip(operator: string): boolean {
    if (this.#tokens[this.#at]?.operator !== operator) return false;
    this.#at += 1;
    return true;
  }

  #describe(): string {
    const { operator, text, number, word } = this.#tokens[this.#at] ?? {};
    return String(operator ?? (text === undefined ? undefined : `'${text}'`) ?? number ?? word ?? 'the end');
  }
}

function tokenize(source: string): readonly Token[] {
  const tokens: Token[] = [];
  const trimmed = source.trimEnd();
  let at = 0;
  while (at < trimmed.length) {
    token.lastIndex = at;
    const [match, operator, text, number, word] = token.exec(trimmed) ?? [];
    if (match === undefined) throw new InvalidPredicate(`it cannot be read from ${trimmed.slice(at)}`);
    tokens.push({
      ...(operator !== undefined && { operator }),
      ...(text !== undefined && { text }),
      ...(number !== undefined && { number: Number(number) }),
      ...(word !== undefined && { word }),
    });
    at += match.length;
  }
  return tokens;
}

function readPath(word: string): ClaimPath {
  const parsed = parseClaimPath(word);
  if (!parsed.ok) throw new InvalidPredicate(`${word} is not a claim: ${parsed.reason}`);
  return parsed.path;
}

function equals(a: unknown, b: unknown): boolean {
  return a === b;
}

function isEmpty(value: unknown): boolean {
  return value === '' || value === false || value === null;
}
