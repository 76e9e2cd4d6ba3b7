import { TemplateError } from './syntax.ts';

/** A token of an action, the text between `{{` and `}}`. */
export type Token = ReadToken & {
  /** Whether white space precedes it, which separates arguments. */
  readonly spaced: boolean;
};

type ReadToken = { readonly text: string } & (
  | { readonly kind: TokenKind }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'int'; readonly value: bigint }
  | { readonly kind: 'float'; readonly value: number }
);

type TokenKind = 'field' | 'variable' | 'word' | '.' | '(' | ')' | '|' | ',' | '=' | ':=';

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
    if (trimsNext) text = text.replace(/^[ \t\r\n]+/, '');
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

const space = /[ \t\r\n]+/y;
const isSpace = (char: string): boolean => char !== '' && ' \t\r\n'.includes(char);

/** A pattern would backtrack over long runs of white space. */
function trimEnd(text: string): string {
  let end = text.length;
  while (isSpace(text.charAt(end - 1))) end -= 1;
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

/** The first group that matches is the kind of the token. */
const token = new RegExp(
  [
    /(?<mark>:=|[=|,()])/,
    /(?<number>[+-]?(?:0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?))/,
    /(?<word>[\p{L}_][\p{L}\p{Nd}_]*)/u,
    /(?<field>\.[\p{L}\p{Nd}_]+)/u,
    /(?<dot>\.)/,
    /(?<variable>\$[\p{L}\p{Nd}_]*)/u,
    /(?<quoted>"(?:[^"\\\n]|\\[^\n])*")/,
    /(?<raw>`[^`]*`)/,
    /(?<char>'(?:[^'\\\n]|\\[^\n][^'\n]*)')/u,
  ]
    .map(({ source }) => source)
    .join('|'),
  'uy',
);
/** Allowed after a name. */
const terminator = /[ \t\r\n.,|:)(=]|\}\}/y;

function readAction(source: string, start: number, line: number): Action {
  const tokens: Token[] = [];
  let at = start;
  for (;;) {
    const end = readActionEnd(source, at);
    if (end !== undefined) return { tokens, ...end };
    const spaced = matchAt(space, source, at) ?? '';
    at += spaced.length;
    if (spaced !== '') continue;
    if (at >= source.length) throw new TemplateError('unclosed action', line);
    const next = { ...readToken(source, at, line), spaced: isSpace(source.charAt(at - 1)) };
    tokens.push(next);
    at += next.text.length;
    const mustEnd = next.kind === 'field' || next.kind === 'variable' || next.kind === 'word';
    if (mustEnd && at < source.length && matchAt(terminator, source, at) === undefined) {
      const bad = String.fromCodePoint(source.codePointAt(at) ?? 0);
      throw new TemplateError(`bad character ${JSON.stringify(bad)}`, line);
    }
  }
}

function matchAt(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

function readToken(source: string, at: number, line: number): ReadToken {
  token.lastIndex = at;
  const match = token.exec(source);
  const text = match?.[0] ?? '';
  const kind = Object.entries(match?.groups ?? {}).find(([, group]) => group !== undefined)?.[0];
  switch (kind) {
    case 'word':
    case 'field':
    case 'variable':
      return { kind, text };
    case 'mark':
    case 'dot':
      return { kind: text as TokenKind, text }; // a match of the pattern
    case 'number':
      return readNumber(text, line);
    case 'quoted':
      return { kind: 'string', text, value: unquote(text.slice(1, -1), '"', line) };
    case 'raw':
      return { kind: 'string', text, value: text.slice(1, -1).replaceAll('\r', '') };
    case 'char':
      return readCharacter(text, line);
    default:
      throw new TemplateError(toProblem(source.charAt(at)), line);
  }
}

function readCharacter(text: string, line: number): ReadToken {
  const [char = '', ...others] = unquote(text.slice(1, -1), "'", line);
  if (char === '' || others.length > 0)
    throw new TemplateError(`malformed character constant: ${text}`, line);
  return { kind: 'int', text, value: BigInt(char.codePointAt(0) ?? 0) };
}

function toProblem(char: string): string {
  if (char === '"') return 'unterminated quoted string';
  if (char === '`') return 'unterminated raw quoted string';
  if (char === "'") return 'unterminated character constant';
  return `unrecognized character in action: ${JSON.stringify(char)}`;
}

const maxInt = 2n ** 63n - 1n;
const minInt = -(2n ** 63n);

function readNumber(text: string, line: number): ReadToken {
  const bad = (): TemplateError => new TemplateError(`bad number syntax: ${JSON.stringify(text)}`, line);
  if (/__|_$|_[.eE]|\._|^[+-]?_/.test(text)) throw bad();
  const digits = text.replaceAll('_', '');
  if (/^[+-]?\d*\.|^[+-]?\d+[eE]/.test(digits)) {
    const value = Number(digits);
    if (!Number.isFinite(value)) throw bad();
    return { kind: 'float', text, value };
  }
  const [, sign, body = ''] = /^([+-]?)(.*)$/.exec(digits) ?? [];
  const octal = /^0\d+$/.test(body) ? `0o${body.slice(1)}` : body;
  try {
    const magnitude = BigInt(octal);
    const value = sign === '-' ? -magnitude : magnitude;
    if (value > maxInt || value < minInt) throw new TemplateError(`integer overflow: ${text}`, line);
    return { kind: 'int', text, value };
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
