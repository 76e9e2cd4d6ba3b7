import { isSafeName } from './context.ts';
import { printAll } from './format.ts';
import type { EscaperName, Value } from './syntax.ts';

const htmlEntities: Readonly<Record<string, string>> = {
  '\0': '\uFFFD',
  '"': '&#34;',
  '&': '&amp;',
  "'": '&#39;',
  '<': '&lt;',
  '>': '&gt;',
};

/** The template function `html`. */
export function escapeHtmlText(text: string): string {
  return text.replaceAll(/[\0"&'<>]/g, (char) => htmlEntities[char] ?? char);
}

/** Escapes text and quoted attributes; and `+` for browsers that detect UTF-7. */
function escapeHtmlValue(text: string): string {
  return text.replaceAll(/[\0"&'+<>]/g, (char) => (char === '+' ? '&#43;' : (htmlEntities[char] ?? char)));
}

/** Output instead of an unsafe value, as in Go. */
const unsafeValue = 'ZgotmplZ';

/** Escapes unquoted attributes, which end at white space. */
function escapeUnquoted(text: string): string {
  // After an empty value, the next attribute would become the value.
  if (text === '') return unsafeValue;
  return text.replaceAll(/[\0\t\n\v\f\r "&'+<=>`\uFDD0-\uFDEF\uFFF0-\uFFFF]/g, (char) => {
    if (char === '\0') return '&#xfffd;';
    if (char >= '\uFDD0') return `&#x${char.charCodeAt(0).toString(16)};`;
    return htmlEntities[char] ?? `&#${char.charCodeAt(0)};`;
  });
}

/** The template function `js`. */
export function escapeJsText(text: string): string {
  const escapes: Record<string, string> = { '\\': '\\\\', "'": "\\'", '"': '\\"' };
  return text.replaceAll(/[\\'"<>&=]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => {
    if (escapes[char] !== undefined) return escapes[char];
    const code = char.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`;
  });
}

const safeSchemes: readonly string[] = ['http', 'https', 'mailto'];

/** Allows relative URLs and schemes that do not run code. */
function filterUrl(url: string): string {
  return isSafeUrl(url) ? url : `#${unsafeValue}`;
}

function isSafeUrl(url: string): boolean {
  const colon = url.indexOf(':');
  const scheme = url.slice(0, Math.max(colon, 0));
  return colon === -1 || scheme.includes('/') || safeSchemes.includes(scheme.toLowerCase());
}

/** Percent-encodes invalid characters; delimiters and existing escapes stay. */
function normalizeUrl(url: string): string {
  return encode(url, /[^A-Za-z0-9\-._~!#$&*+,/:;=?@[\]%]|%(?![\da-fA-F]{2})/gu);
}

/** Percent-encodes delimiters too. */
function escapeUrlPart(text: string): string {
  return encode(text, /[^A-Za-z0-9\-._~]/gu);
}

function encode(text: string, pattern: RegExp): string {
  return text.replaceAll(pattern, (char) => {
    return [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  });
}

/** The template function `urlquery`. */
export function escapeUrlQuery(text: string): string {
  return encode(text, /[^A-Za-z0-9\-._~ ]/gu)
    .replaceAll(/%[\da-f]{2}/g, (code) => code.toUpperCase())
    .replaceAll(' ', '+');
}

const candidate = /^([ \t\n\f\r]*)([^ \t\n\f\r]*)([\s\S]*)$/;

/** Filters each URL of a `srcset`; only a width or a density may follow a URL. */
function escapeSrcset(text: string): string {
  return text
    .split(',')
    .map((part) => {
      const [, before = '', url = '', after = ''] = candidate.exec(part) ?? [];
      const isSafe = isSafeUrl(url) && /^[A-Za-z0-9 \t\n\f\r]*$/.test(after);
      return isSafe ? `${before}${normalizeUrl(url).replaceAll(',', '%2c')}${after}` : `#${unsafeValue}`;
    })
    .join(',');
}

interface Escaper {
  readonly escape: (value: Value) => string;
  /** Equivalent template function. */
  readonly sameAs?: 'html' | 'urlquery';
}

/** Input of escaping functions. Unlike `print`, they name missing values. */
export function toOperandText(args: readonly Value[]): string {
  return printAll(args.map((arg) => arg ?? '<no value>'));
}

/** Prints as `print` does; the text of nil is empty. */
export function toText(value: Value): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : printAll([value]);
}

const onText =
  (escapeText: (text: string) => string): Escaper['escape'] =>
  (value) =>
    escapeText(toText(value));

export const htmlEscapers: Readonly<Record<EscaperName, Escaper>> = {
  htmlText: { escape: onText(escapeHtmlValue), sameAs: 'html' },
  htmlUnquoted: { escape: onText(escapeUnquoted) },
  htmlName: { escape: onText(filterName) },
  urlFilter: { escape: onText(filterUrl) },
  urlWhole: { escape: onText(normalizeUrl), sameAs: 'urlquery' },
  urlPart: { escape: onText(escapeUrlPart), sameAs: 'urlquery' },
  srcset: { escape: onText(escapeSrcset) },
  nothing: { escape: () => '' },
  html: { escape: (value) => escapeHtmlText(toOperandText([value])) },
  urlquery: { escape: (value) => escapeUrlQuery(toOperandText([value])) },
};

function filterName(text: string): string {
  const name = text.toLowerCase();
  return isSafeName(name) ? name : unsafeValue;
}
