import type { FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Api } from './api.ts';

const kib = 1024;

/** Maximum body sizes in bytes. Parsing blocks the event loop, and most callers are not authenticated yet. */
export const bodyLimits = {
  /** No body, or a few ids, codes and names. The default. */
  small: 4 * kib,
  /** A contact with a CAPTCHA token, or a code with a password and a `redirect_to`. */
  contact: 16 * kib,
  /** 4 KiB of `user_metadata`, of which each byte may be escaped with six, beside a contact and a password. */
  metadata: 32 * kib,
  /** An ID token and an access token of a provider, or a signed message of 20 KiB. */
  token: 32 * kib,
  /** Metadata of both kinds and a password hash; read after the token of the administrator has been verified. */
  admin: 64 * kib,
} as const;

/** Metadata are not nested deeper than this. */
const maxDepth = 64;
/** Metadata of both kinds have at most 6 KiB, which is 1,024 of the shortest members (`"a":1,`). */
const maxMembers = 1024;
/** The same for the shortest list items (`1,`). */
const maxItems = 3 * 1024;
/** Fields of a form. Grants have less than a dozen. */
const maxFields = 64;

/**
 * Checks the nesting and the number of members of JSON before it is parsed, in one pass without allocation. Syntax errors are left to
 * the parser.
 *
 * @returns the reason to refuse the text, or undefined
 */
export function jsonShapeProblem(text: string): string | undefined {
  let depth = 0;
  let members = 0;
  let items = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at + 1);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case 0x3a: // :
        if (++members > maxMembers) return `it has more than ${maxMembers} members`;
        break;
      case 0x2c: // ,
        if (++items > maxItems) return `it has more than ${maxItems} members and list items`;
        break;
    }
  }
  return undefined;
}

/** Index of the closing quotation mark of a string, or the length of an unterminated text. */
function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 0x22) return at;
    // A backslash escapes the next character.
    if (character === 0x5c) at++;
  }
  return text.length;
}

/** The reason to refuse a form before it is parsed, or undefined. */
export function formShapeProblem(text: string): string | undefined {
  let fields = 1;
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1))
    if (++fields > maxFields) return `the form has more than ${maxFields} fields`;
  return undefined;
}

const formType = 'application/x-www-form-urlencoded';
/** Escapes of what PostgreSQL cannot store: NUL, and a half of a surrogate pair, which two of them may make whole. */
const suspiciousEscape = /\\u(?:0000|d[89a-f])/i;

/**
 * Reads bodies as JSON whatever their content type says; forms are read as such only when they are no JSON, because curl announces
 * a form by default. No body and an empty one are `undefined`: clients announce JSON and send nothing. A `null` at the top is the
 * same as no such key. Members named `__proto__` are dropped.
 */
export function addBodyParsers(api: Api): void {
  const defaultParser = api.getDefaultJsonParser('remove', 'remove');
  const parseJson: BodyParser = (request, text, done) => {
    if (text.trim() === '') return done(null, undefined);
    const shape = jsonShapeProblem(text);
    if (shape !== undefined) return done(notJson(shape));
    return defaultParser(request, text, (error, value: unknown) => {
      if (error) return done(error);
      if (suspiciousEscape.test(text) && !isStorable(value)) return done(unstorable());
      if (text.includes('null')) removeNulls(value);
      return done(null, value);
    });
  };
  // Each route says how large its body may be.
  const options = { parseAs: 'string' } as const;
  api.removeAllContentTypeParsers();
  api.addContentTypeParser<string>('*', options, parseJson);
  api.addContentTypeParser<string>(formType, options, (request, text, done) => {
    if (text.trimStart().startsWith('{')) return parseJson(request, text, done);
    const shape = formShapeProblem(text);
    if (shape !== undefined) return done(notJson(shape));
    const form = Object.fromEntries(new URLSearchParams(text));
    return text.includes('%00') ? done(unstorable()) : done(null, form);
  });
}

type BodyParser = (
  request: FastifyRequest,
  text: string,
  done: (error: Error | null, body?: unknown) => void,
) => void;

/** Did the client send the form that OAuth 2.0 has for `/token`? Its `grant_type` then is in the body. */
export function isTokenForm(
  contentType: string | undefined,
  body: Readonly<Record<string, unknown>>,
): boolean {
  return (contentType?.toLowerCase().startsWith(formType) ?? false) && 'grant_type' in body;
}

/** Removes the members of the top level that are null. */
function removeNulls(value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  for (const [key, member] of Object.entries(value)) if (member === null) Reflect.deleteProperty(value, key);
}

function notJson(reason: string): Error {
  return errors.bad_json({ message: `${errors.bad_json.definition.message}: ${reason}` });
}

function unstorable(): Error {
  return notJson('a text has NUL or half a surrogate pair');
}

/** Its depth and size have been checked before it was parsed. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, member]) => isStorable(key) && isStorable(member));
}
