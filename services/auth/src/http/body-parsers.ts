import type { FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { Api } from './api.ts';

const maxDepth = 64;
/** User and app metadata have at most 6 KiB: 1,024 of the shortest members (`"a":1,`). */
const maxMembers = 1024;
/** Maximum of the shortest list items (`1,`). */
const maxItems = 3 * 1024;
/** Grants have fewer than a dozen form fields. */
const maxFields = 64;

/**
 * Checks depth and number of members of JSON before it is parsed, without allocations. Syntax
 * errors are left to the parser.
 *
 * @returns the reason to reject the text, or undefined
 */
export function findJsonProblem(text: string): string | undefined {
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
        if (++depth > maxDepth) return `it has more than ${maxDepth} levels`;
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

/** Index of the closing quotation mark, or the length of the text if there is none. */
function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 0x22) return at;
    // A backslash escapes the next character.
    if (character === 0x5c) at++;
  }
  return text.length;
}

/** The reason to reject a form before it is parsed, or undefined. */
export function findFormProblem(text: string): string | undefined {
  let fields = 1;
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1))
    if (++fields > maxFields) return `the form has more than ${maxFields} fields`;
  return undefined;
}

declare module 'fastify' {
  // The library's way to add a property.
  interface FastifyRequest {
    /** All fields of a form. The body has the last one of each name. */
    form: URLSearchParams | undefined;
  }
}

export const formType = 'application/x-www-form-urlencoded';
/** NUL and surrogates. PostgreSQL cannot store NUL and unpaired surrogates. */
const suspiciousEscape = /\\u(?:0000|d[89a-f])/i;

/**
 * Parses bodies as JSON, whatever their content type. Forms are parsed as such unless they look
 * like JSON: curl sends the form content type by default. An empty body is `undefined`. Top-level
 * members that are `null` and members named `__proto__` are removed.
 */
export function addBodyParsers(api: Api): void {
  const defaultParser = api.getDefaultJsonParser('remove', 'remove');
  const parseJson: BodyParser = (request, text, done) => {
    if (text.trim() === '') return done(null, undefined);
    const problem = findJsonProblem(text);
    if (problem !== undefined) return done(invalidBody(problem));
    return defaultParser(request, text, (error, value: unknown) => {
      if (error) return done(error);
      if (suspiciousEscape.test(text) && !isStorable(value)) return done(unstorable());
      if (text.includes('null')) removeNulls(value);
      return done(null, value);
    });
  };
  // Routes set the size limit.
  const options = { parseAs: 'string' } as const;
  api.removeAllContentTypeParsers();
  api.decorateRequest('form', undefined);
  api.addContentTypeParser<string>('*', options, parseJson);
  api.addContentTypeParser<string>(formType, options, (request, text, done) => {
    if (text.trimStart().startsWith('{')) return parseJson(request, text, done);
    const problem = findFormProblem(text);
    if (problem !== undefined) return done(invalidBody(problem));
    request.form = new URLSearchParams(text);
    return text.includes('%00') ? done(unstorable()) : done(null, Object.fromEntries(request.form));
  });
}

type BodyParser = (
  request: FastifyRequest,
  text: string,
  done: (error: Error | null, body?: unknown) => void,
) => void;

function removeNulls(value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  for (const [key, member] of Object.entries(value)) if (member === null) Reflect.deleteProperty(value, key);
}

function invalidBody(reason: string): Error {
  return errors.bad_json({ message: `${errors.bad_json.definition.message}: ${reason}` });
}

function unstorable(): Error {
  return invalidBody('a string has NUL or an unpaired surrogate');
}

/** The recursion is limited: depth and size were checked before parsing. */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, member]) => isStorable(key) && isStorable(member));
}
