import { type EscapeContext, type StyleState, urlPartAfter } from './context.ts';
import { decodeCss } from './escapers.ts';
import { ContextError } from './syntax.ts';

/** Result of a scanner. */
export interface Step {
  readonly context: EscapeContext;
  /** Position after the scanned text. */
  readonly end: number;
  /** Default: the scanned text. */
  readonly output?: string;
}

export type Scanner = (text: string, start: number, context: EscapeContext) => Step;

const delimiters = /["'`/{}]|<!--|-->|#!|[<#-]/g;

/** Scans JavaScript up to the next quote, comment, regular expression or brace. */
export const scanScript: Scanner = (text, start, context) => {
  delimiters.lastIndex = start;
  const match = delimiters.exec(text);
  const end = match?.index ?? text.length;
  const slash = slashAfter(text.slice(start, end), context.slash);
  const output = text.slice(start, end);
  if (match === null) return { context: { ...context, slash }, end };
  const [mark] = match;
  const next = end + mark.length;
  const enter = (state: EscapeContext['state']): Step => {
    return { context: { ...context, state, slash: 'regexp' }, end: next };
  };
  switch (mark) {
    case '"':
      return enter('jsDoubleQuoted');
    case "'":
      return enter('jsSingleQuoted');
    case '`':
      return enter('jsTemplate');
    case '/':
      return scanSlash(text, end, { ...context, slash }, output);
    case '{':
    case '}':
      return scanBrace(mark, next, { ...context, slash: 'regexp' });
    case '<':
    case '-':
    case '#':
      // As in Go, these do not change the meaning of a slash.
      return { context: { ...context, slash }, end: next };
    default:
      // `<!--`, `-->` and `#!` start comments to the end of the line.
      return { context: { ...context, slash, state: 'jsLineComment' }, end: next, output };
  }
};

function scanSlash(text: string, at: number, context: EscapeContext, output: string): Step {
  const two = text.slice(at, at + 2);
  if (two === '//') return { context: { ...context, state: 'jsLineComment' }, end: at + 2, output };
  if (two === '/*') return { context: { ...context, state: 'jsBlockComment' }, end: at + 2, output };
  switch (context.slash) {
    case 'regexp':
      return { context: { ...context, state: 'jsRegExp' }, end: at + 1 };
    case 'division':
      return { context: { ...context, slash: 'regexp' }, end: at + 1 };
    default:
      throw new ContextError(
        `'/' could start a division or regexp: ${JSON.stringify(text.slice(at, at + 32))}`,
      );
  }
}

/** In template literals, the brace that matches `${` ends the expression. */
function scanBrace(mark: string, end: number, context: EscapeContext): Step {
  const { braces } = context;
  const open = braces.at(-1);
  if (open === undefined) return { context, end };
  const rest = braces.slice(0, -1);
  if (mark === '{') return { context: { ...context, braces: [...rest, open + 1] }, end };
  if (open > 0) return { context: { ...context, braces: [...rest, open - 1] }, end };
  return { context: { ...context, state: 'jsTemplate', braces: rest }, end };
}

/** Creates a scanner to the end of a string or regular expression. `ends` matches escapes, too. */
export function scriptLiteralScanner(ends: RegExp): Scanner {
  return (text, start, context) => {
    ends.lastIndex = start;
    let isInClass = false;
    for (let match = ends.exec(text); match !== null; match = ends.exec(text)) {
      const [mark] = match;
      if (mark === '\\') ends.lastIndex = afterEscape(text, match.index, 'JS string');
      else if (mark === '[') isInClass = true;
      else if (mark === ']') isInClass = false;
      else if (!isClosingTag(text, match.index) && !isInClass)
        return { context: { ...context, state: 'js', slash: 'division' }, end: match.index + 1 };
    }
    // A value in a character class would need other escapes.
    if (isInClass)
      throw new ContextError(`unfinished JS regexp charset: ${JSON.stringify(text.slice(start))}`);
    return { context, end: text.length };
  };
}

/** The slash of `</script`, which is escaped, does not end a regular expression. */
function isClosingTag(text: string, at: number): boolean {
  return text.charAt(at - 1) === '<' && /^\/script/i.test(text.slice(at, at + 7));
}

function afterEscape(text: string, at: number, where: string): number {
  if (at + 1 >= text.length)
    throw new ContextError(`unfinished escape sequence in ${where}: ${JSON.stringify(text.slice(-32))}`);
  return at + 2;
}

const templateEnds = /[`\\]|\$\{/g;

/** Scans a template literal up to its end or the next expression. */
export function scanScriptTemplate(text: string, start: number, context: EscapeContext): Step {
  templateEnds.lastIndex = start;
  for (let match = templateEnds.exec(text); match !== null; match = templateEnds.exec(text)) {
    const [mark] = match;
    if (mark === '\\') templateEnds.lastIndex = afterEscape(text, match.index, 'JS template literal');
    else if (mark === '`') return { context: { ...context, state: 'js' }, end: match.index + 1 };
    else
      return {
        context: { ...context, state: 'js', slash: 'regexp', braces: [...context.braces, 0] },
        end: match.index + 2,
      };
  }
  return { context, end: text.length };
}

const wordsBeforePattern = new Set(
  'break case continue delete do else finally in instanceof return throw try typeof void'.split(' '),
);
const lastWord = /[A-Za-z0-9_$]+$/;

/** Meaning of a slash after this code. */
function slashAfter(code: string, before: EscapeContext['slash']): EscapeContext['slash'] {
  let end = code.length;
  while (end > 0 && /[\t\n\f\r \u2028\u2029]/.test(code.charAt(end - 1))) end -= 1;
  const trimmed = code.slice(0, end);
  const last = trimmed.at(-1);
  if (last === undefined) return before;
  if (last === '+' || last === '-') {
    // A slash after `x++` divides, a slash after `x +` starts a regular expression.
    let count = 0;
    while (trimmed.charAt(end - 1 - count) === last) count += 1;
    return count % 2 === 1 ? 'regexp' : 'division';
  }
  if (last === '.') return /\d/.test(trimmed.charAt(end - 2)) ? 'division' : 'regexp';
  if (/[,<>=*%&|^?!~([:;{}]/.test(last)) return 'regexp';
  return wordsBeforePattern.has(lastWord.exec(trimmed.slice(-64))?.[0] ?? '') ? 'regexp' : 'division';
}

const styleScannerDelimiters = /[("'/]/g;

/** Scans CSS up to the next quote, comment or `url(`. */
export function scanStyle(text: string, start: number, context: EscapeContext): Step {
  styleScannerDelimiters.lastIndex = start;
  for (
    let match = styleScannerDelimiters.exec(text);
    match !== null;
    match = styleScannerDelimiters.exec(text)
  ) {
    const [mark] = match;
    const next = match.index + 1;
    const enter = (state: StyleState, end = next): Step => {
      return { context: { ...context, state, url: 'start' }, end };
    };
    if (mark === '"') return enter('cssDoubleQuoted');
    if (mark === "'") return enter('cssSingleQuoted');
    if (mark === '/') {
      const second = text.charAt(next);
      if (second !== '/' && second !== '*') continue;
      const state = second === '*' ? 'cssBlockComment' : 'cssLineComment';
      return { ...enter(state, next + 1), output: text.slice(start, match.index) };
    }
    if (!endsWithUrl(text.slice(start, match.index))) continue;
    const end = next + (/^[\t\n\f\r ]*/.exec(text.slice(next))?.[0].length ?? 0);
    if (text.charAt(end) === '"') return enter('cssDoubleQuotedUrl', end + 1);
    return text.charAt(end) === "'" ? enter('cssSingleQuotedUrl', end + 1) : enter('cssUrl', end);
  }
  return { context, end: text.length };
}

function endsWithUrl(text: string): boolean {
  return /(?:^|[^\w-])url$/i.test(text.slice(-64).replace(/[\t\n\f\r ]+$/, ''));
}

/** Creates a scanner to the end of a string or URL. `ends` matches escapes, too. */
export function styleStringScanner(ends: RegExp): Scanner {
  return (text, start, context) => {
    ends.lastIndex = start;
    for (let match = ends.exec(text); match !== null; match = ends.exec(text)) {
      if (match[0] !== '\\') return { context: { ...context, state: 'css' }, end: match.index + 1 };
      ends.lastIndex = afterEscape(text, match.index, 'CSS string');
    }
    const url = urlPartAfter(decodeCss(text.slice(start)), context.url);
    return { context: { ...context, url }, end: text.length };
  };
}
