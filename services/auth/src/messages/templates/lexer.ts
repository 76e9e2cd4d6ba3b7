import { TemplateError } from './syntax.ts';

/** A token of an action, the text between `{{` and `}}`. */
export type Token =
  | { readonly kind: TokenKind; readonly text: string; readonly line: number }
  | { readonly kind: 'string'; readonly text: string; readonly value: string; readonly line: number }
  | { readonly kind: 'int'; readonly text: string; readonly value: bigint; readonly line: number }
  | { readonly kind: 'float'; readonly text: string; readonly value: number; readonly line: number };

/** White space is a token, as it separates arguments. */
type TokenKind = 'space' | 'field' | 'variable' | 'word' | '.' | '(' | ')' | '|' | ',' | '=' | ':=';

export type Segment =
  | { readonly kind: 'text'; readonly text: string; readonly line: number }
  | { readonly kind: 'action'; readonly tokens: readonly Token[]; readonly line: number };

const maxActions = 20_000;

const trimMarkerBefore = /-[ \t\r\n]/y;
const actionEnd = /[ \t\r\n]-\}\}|\}\}/y;

/** Splits a template into text and actions, and applies trim markers. */
export function splitTemplate(source: string): readonly Segment[] {
  const segments: Segment[] = [];
  const lines = lineCounter(source);
  let at = 0;
  let trimsNext = false;
  let actions = 0;
  const addText = (end: number, trimsEnd: boolean): void => {
    let text = source.slice(at, end);
    if (trimsNext) text = trimStart(text);
    if (trimsEnd) text = trimEnd(text);
    if (text !== '') segments.push({ kind: 'text', text, line: lines(at) });
  };
  for (let open = source.indexOf('{{'); open !== -1; open = source.indexOf('{{', at)) {
    const line = lines(open);
    actions += 1;
    if (actions > maxActions) throw new TemplateError(`more than ${maxActions} actions`, line);
    let start = open + 2;
    trimMarkerBefore.lastIndex = start;
    const trims = trimMarkerBefore.test(source);
    if (trims) start += 2;
    addText(open, trims);
    const action = source.startsWith('/*', start)
      ? readComment(source, start, line)
      : readAction(source, start, line);
    if (action.tokens !== undefined) segments.push({ kind: 'action', tokens: action.tokens, line });
    at = action.end;
    trimsNext = action.trimsNext;
  }
  addText(source.length, false);
  return segments;
}

/** Returns the line of a position. Positions must ascend. */
function lineCounter(source: string): (position: number) => number {
  let line = 1;
  let seen = 0;
  return (position) => {
    for (let next = source.indexOf('\n', seen); next !== -1 && next < position; ) {
      line += 1;
      seen = next + 1;
      next = source.indexOf('\n', seen);
    }
    return line;
  };
}

const isSpace = (char: string): boolean => char === ' ' || char === '\t' || char === '\r' || char === '\n';

function trimStart(text: string): string {
  let start = 0;
  while (start < text.length && isSpace(text.charAt(start))) start += 1;
  return text.slice(start);
}

function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

interface Action {
  /** Absent for a comment. */
  readonly tokens?: readonly Token[];
  readonly end: number;
  readonly trimsNext: boolean;
}

function readComment(source: string, start: number, line: number): Action {
  const close = source.indexOf('*/', start + 2);
  if (close === -1) throw new TemplateError('unclosed comment', line);
  const end = readActionEnd(source, close + 2);
  if (end === undefined) throw new TemplateError('comment ends before closing delimiter', line);
  return end;
}

function readActionEnd(source: string, at: number): Pick<Action, 'end' | 'trimsNext'> | undefined {
  actionEnd.lastIndex = at;
  const match = actionEnd.exec(source);
  return match === null ? undefined : { end: actionEnd.lastIndex, trimsNext: match[0].length > 2 };
}

const spaces = /[ \t\r\n]+/y;
const plain = /:=|[=|,()]/y;
const number = /[+-]?(?:0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)/y;
const word = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
const field = /\.[\p{L}\p{Nd}_]+/uy;
const variable = /\$[\p{L}\p{Nd}_]*/uy;
const quoted = /"(?:[^"\\\n]|\\[^\n])*"/y;
const raw = /`[^`]*`/y;
const char = /'(?:[^'\\\n]|\\[^\n][^'\n]*)'/uy;
/** Allowed after a name. */
const terminator = /[ \t\r\n.,|:)(=]|\}\}/y;

function readAction(source: string, start: number, line: number): Action {
  const tokens: Token[] = [];
  let at = start;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0];
  };
  for (;;) {
    const end = readActionEnd(source, at);
    if (end !== undefined) return { tokens, ...end };
    if (at >= source.length) throw new TemplateError('unclosed action', line);
    const token = readToken(take, line, source.charAt(at));
    tokens.push(token);
    at += token.text.length;
    const mustEnd = token.kind === 'field' || token.kind === 'variable' || token.kind === 'word';
    if (mustEnd && at < source.length && take(terminator) === undefined)
      throw new TemplateError(`bad character ${JSON.stringify(charAt(source, at))}`, line);
  }
}

function charAt(source: string, at: number): string {
  return String.fromCodePoint(source.codePointAt(at) ?? 0);
}

function readToken(take: (pattern: RegExp) => string | undefined, line: number, first: string): Token {
  const space = take(spaces);
  if (space !== undefined) return { kind: 'space', text: space, line };
  const mark = take(plain);
  if (mark !== undefined) return { kind: mark as TokenKind, text: mark, line }; // a match of the pattern
  const digits = take(number);
  if (digits !== undefined) return readNumber(digits, line);
  const name = take(word);
  if (name !== undefined) return { kind: 'word', text: name, line };
  const member = take(field);
  if (member !== undefined) return { kind: 'field', text: member, line };
  if (first === '.') return { kind: '.', text: '.', line };
  const own = take(variable);
  if (own !== undefined) return { kind: 'variable', text: own, line };
  const string = take(quoted);
  if (string !== undefined)
    return { kind: 'string', text: string, value: unquote(string.slice(1, -1), '"', line), line };
  const rawString = take(raw);
  if (rawString !== undefined)
    return {
      kind: 'string',
      text: rawString,
      value: rawString.slice(1, -1).replaceAll('\r', ''),
      line,
    };
  const character = take(char);
  if (character !== undefined) {
    const value = unquote(character.slice(1, -1), "'", line);
    const code = value.codePointAt(0);
    if (code === undefined || value.length !== String.fromCodePoint(code).length)
      throw new TemplateError(`malformed character constant: ${character}`, line);
    return { kind: 'int', text: character, value: BigInt(code), line };
  }
  if (first === '"') throw new TemplateError('unterminated quoted string', line);
  if (first === '`') throw new TemplateError('unterminated raw quoted string', line);
  if (first === "'") throw new TemplateError('unterminated character constant', line);
  throw new TemplateError(`unrecognized character in action: ${JSON.stringify(first)}`, line);
}

const maxInt = 2n ** 63n - 1n;
const minInt = -(2n ** 63n);

function readNumber(text: string, line: number): Token {
  const bad = (): TemplateError => new TemplateError(`bad number syntax: ${JSON.stringify(text)}`, line);
  if (/__|_$|_[.eE]|\._|^[+-]?_/.test(text)) throw bad();
  const digits = text.replaceAll('_', '');
  if (/^[+-]?\d*\.|^[+-]?\d+[eE]/.test(digits)) {
    const value = Number(digits);
    if (!Number.isFinite(value)) throw bad();
    return { kind: 'float', text, value, line };
  }
  const [, sign, body = ''] = /^([+-]?)(.*)$/.exec(digits) ?? [];
  const octal = /^0\d+$/.test(body) ? `0o${body.slice(1)}` : body;
  try {
    const magnitude = BigInt(octal);
    const value = sign === '-' ? -magnitude : magnitude;
    if (value > maxInt || value < minInt) throw new TemplateError(`integer overflow: ${text}`, line);
    return { kind: 'int', text, value, line };
  } catch (error) {
    if (error instanceof SyntaxError) throw bad();
    throw error;
  }
}

const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
};
const escapeSequence =
  /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3})|([abfnrtv\\'"]))|\\[\s\S]?/g;

/**
 * Decodes the escapes of a Go literal. Rejects bytes above 0x7f, which may not form valid UTF-8.
 */
function unquote(text: string, quote: string, line: number): string {
  return text.replaceAll(escapeSequence, (all, ...groups: (string | undefined)[]) => {
    const [byte, short, long, octal, letter] = groups;
    const invalid = new TemplateError(`invalid escape ${all}`, line);
    if (letter !== undefined) {
      if ((letter === '"' || letter === "'") && letter !== quote) throw invalid;
      return escapes[letter] ?? letter;
    }
    const hex = byte ?? short ?? long;
    const code = hex === undefined ? Number.parseInt(octal ?? '-1', 8) : Number.parseInt(hex, 16);
    const isByte = byte !== undefined || octal !== undefined;
    const isSurrogate = code >= 0xd800 && code < 0xe000;
    if (code < 0 || code > (isByte ? 0x7f : 0x10ffff) || isSurrogate) throw invalid;
    return String.fromCodePoint(code);
  });
}
