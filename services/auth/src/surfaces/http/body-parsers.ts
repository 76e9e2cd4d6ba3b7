import type { FastifyRequest } from 'fastify';
import { errors } from '../../errors.ts';
import type { Api } from './api.ts';
import { formShapeProblem, jsonShapeProblem } from './body-limits.ts';

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
