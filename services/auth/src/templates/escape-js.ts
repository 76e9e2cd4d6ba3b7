import type { Value } from './values.ts';

const unicode = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

const shortEscapes: Readonly<Record<string, string>> = {
  '\t': '\\t',
  '\n': '\\n',
  '\f': '\\f',
  '\r': '\\r',
  '/': '\\/',
  '\\': '\\\\',
};

/** Escapes a value within quotes of JavaScript. */
export function escapeJsString(text: string): string {
  return text.replaceAll(
    /[\0\t\n\v\f\r"`&'+/<>\\\u2028\u2029]/g,
    (char) => shortEscapes[char] ?? unicode(char),
  );
}

/** Escapes a value within a template literal, where it must not begin an expression either. */
export function escapeJsTemplate(text: string): string {
  return escapeJsString(text).replaceAll(/[${}]/g, unicode);
}

/** Escapes a value within a regular expression. An empty one would make a comment of `//`. */
export function escapeJsRegExp(text: string): string {
  if (text === '') return '(?:)';
  return text.replaceAll(/[\0\t\n\v\f\r"&'+<>/\\$()*\-.?[\]^{|}\u2028\u2029]/g, (char) => {
    if (shortEscapes[char] !== undefined) return shortEscapes[char];
    return /[$()*\-.?[\]^{|}]/.test(char) ? `\\${char}` : unicode(char);
  });
}

/** Writes a value as JavaScript. Spaces keep a number from joining what stands beside it. */
export function escapeJsValue(value: Value): string {
  const json = jsonOf(value).replaceAll(/[<>&\u2028\u2029]/g, unicode);
  const isWordLike = /^[A-Za-z0-9_$]|^-/.test(json) || /[A-Za-z0-9_$]$/.test(json);
  return isWordLike ? ` ${json} ` : json;
}

function jsonOf(value: Value): string {
  if (typeof value === 'bigint') return String(value);
  return JSON.stringify(value ?? null, sortKeys);
}

/** Maps are written in the order of their keys. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** What the function `js` does. */
export function escapeJsText(text: string): string {
  const escapes: Record<string, string> = { '\\': '\\\\', "'": "\\'", '"': '\\"' };
  return text.replaceAll(/[\\'"<>&=]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => {
    if (escapes[char] !== undefined) return escapes[char];
    const code = char.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`;
  });
}
