import { unsafeValue } from './escape-html.ts';

const safeSchemes: readonly string[] = ['http', 'https', 'mailto'];

/** Lets through what is relative, or has a scheme that runs no code. */
export function filterUrl(url: string): string {
  return isSafeUrl(url) ? url : `#${unsafeValue}`;
}

function isSafeUrl(url: string): boolean {
  const colon = url.indexOf(':');
  const scheme = url.slice(0, Math.max(colon, 0));
  return colon === -1 || scheme.includes('/') || safeSchemes.includes(scheme.toLowerCase());
}

/** Encodes what must not be in a URL; its delimiters and what is encoded already stay. */
export function normalizeUrl(url: string): string {
  return encode(url, /[^A-Za-z0-9\-._~!#$&*+,/:;=?@[\]%]|%(?![\da-fA-F]{2})/gu);
}

/** Encodes a value for a part of a URL, where it must bring no delimiters. */
export function escapeUrlPart(text: string): string {
  return encode(text, /[^A-Za-z0-9\-._~]/gu);
}

function encode(text: string, pattern: RegExp): string {
  return text.replaceAll(pattern, (char) => {
    return [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  });
}

/** What the function `urlquery` does: spaces become `+`. */
export function escapeUrlQuery(text: string): string {
  return encode(text, /[^A-Za-z0-9\-._~ ]/gu)
    .replaceAll(/%[\da-f]{2}/g, (code) => code.toUpperCase())
    .replaceAll(' ', '+');
}

const candidate = /^([ \t\n\f\r]*)([^ \t\n\f\r]*)([\s\S]*)$/;

/** Filters each URL of a `srcset`. What follows a URL may only be a width or a density. */
export function escapeSrcset(text: string): string {
  return text
    .split(',')
    .map((part) => {
      const [, before = '', url = '', after = ''] = candidate.exec(part) ?? [];
      const isSafe = isSafeUrl(url) && /^[A-Za-z0-9 \t\n\f\r]*$/.test(after);
      return isSafe ? `${before}${normalizeUrl(url).replaceAll(',', '%2c')}${after}` : `#${unsafeValue}`;
    })
    .join(',');
}
