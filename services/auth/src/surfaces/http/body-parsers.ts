import type { FastifyRequest } from 'fastify';
import { errors } from '../../errors.ts';
import type { Api } from './api.ts';

const formType = 'application/x-www-form-urlencoded';
/** Largest body taken in. */
export const bodyLimitBytes = 1024 * 1024;
/** Metadata is not nested deeper; the parser itself would take a body of brackets. */
const maxDepth = 64;

/**
 * Reads bodies as JSON whatever their content type says; forms are read as such only when they are no JSON, because curl announces
 * a form by default. No body and an empty one are `undefined`: clients announce JSON and send nothing. A `null` at the top is the
 * same as no such key. Members named `__proto__` are dropped.
 */
export function addBodyParsers(api: Api): void {
  const defaultParser = api.getDefaultJsonParser('remove', 'remove');
  const parseJson: BodyParser = (request, text, done) => {
    if (text.trim() === '') return done(null, undefined);
    return defaultParser(request, text, (error, value: unknown) => {
      if (error) return done(error);
      const problem = textProblem(value, text);
      return problem === undefined ? done(null, withoutNulls(value)) : done(problem);
    });
  };
  const options = { parseAs: 'string', bodyLimit: bodyLimitBytes } as const;
  api.removeAllContentTypeParsers();
  api.addContentTypeParser<string>('*', options, parseJson);
  api.addContentTypeParser<string>(formType, options, (request, text, done) => {
    if (text.trimStart().startsWith('{')) return parseJson(request, text, done);
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

function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

/** What PostgreSQL cannot store: NUL and halves of surrogate pairs. They come in as escapes only. */
function textProblem(value: unknown, text: string): Error | undefined {
  return isAcceptable(value, text.includes('\\u'), maxDepth) ? undefined : unstorable();
}

function unstorable(): Error {
  return errors.bad_json({
    message: `Could not parse request body as JSON: it is nested deeper than ${maxDepth} levels, or has a text with NUL or half a surrogate pair`,
  });
}

function isAcceptable(value: unknown, suspicious: boolean, depth: number): boolean {
  if (typeof value === 'string') return !suspicious || (!value.includes('\0') && value.isWellFormed());
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  return Object.entries(value).every(
    ([key, member]) => isAcceptable(key, suspicious, depth) && isAcceptable(member, suspicious, depth - 1),
  );
}
