import type { Context, StyleState } from './context.ts';
import { decodeCss } from './escape-css.ts';
import { ContextError, type Step } from './script-scanner.ts';
import { urlPartAfter } from './url-part.ts';

const delimiters = /[("'/]/g;

/** Reads CSS up to the next quote, comment or `url(`. */
export function scanStyle(text: string, start: number, context: Context): Step {
  delimiters.lastIndex = start;
  for (let match = delimiters.exec(text); match !== null; match = delimiters.exec(text)) {
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

const stringEnds = {
  cssDoubleQuoted: /[\\"]/g,
  cssDoubleQuotedUrl: /[\\"]/g,
  cssSingleQuoted: /[\\']/g,
  cssSingleQuotedUrl: /[\\']/g,
  cssUrl: /[\\\t\n\f\r )]/g,
} as const;

/** Reads to the end of a string or URL of CSS. */
export function scanStyleString(
  text: string,
  start: number,
  context: Context & { readonly state: keyof typeof stringEnds },
): Step {
  const ends = stringEnds[context.state];
  ends.lastIndex = start;
  for (let match = ends.exec(text); match !== null; match = ends.exec(text)) {
    if (match[0] !== '\\') return { context: { ...context, state: 'css' }, end: match.index + 1 };
    if (match.index + 1 >= text.length)
      throw new ContextError(`unfinished escape sequence in CSS string: ${JSON.stringify(text.slice(-32))}`);
    ends.lastIndex = match.index + 2;
  }
  const url = urlPartAfter(decodeCss(text.slice(start)), context.url);
  return { context: { ...context, url }, end: text.length };
}
