import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { isUuid } from '@tollgate/kit/text';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import { type TSchema, Type } from 'typebox';
import type { PageRequest } from '../db/paging.ts';
import { errors } from '../errors.ts';

/** The Fastify instance. Bodies have the type of their schema. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** Adds the routes of a feature, which takes a part of the context. */
export type AddRoutes<Context> = (api: Api, context: Context) => void;

/** Hides a response from scripts of other sites, which may read those of the API. */
export function denyCors(reply: FastifyReply): void {
  for (const header of ['access-control-allow-origin', 'access-control-allow-credentials'])
    reply.removeHeader(header);
}

/** `null` is removed before validation. */
export const optionalText = Type.Optional(Type.String());
export const optionalTexts = Type.Optional(Type.Array(Type.String()));

export const optionalFlag = Type.Optional(Type.Boolean());

/** An object with any members: metadata. */
export const optionalObject = Type.Optional(Type.Record(Type.String(), Type.Unknown()));

/** Clients may omit the body only of routes with `allowMissingBody`. */
export function body<T extends Record<string, TSchema>>(members: T) {
  return Type.Object(members);
}

/** Used by a route without required members, whose clients may also omit the body. */
export function allowMissingBody(request: FastifyRequest, _reply: unknown, done: () => void): void {
  request.body ??= {};
  done();
}

const kib = 1024;

/** Limits in bytes. Parsing blocks the event loop, and most callers are not authenticated yet. */
export const bodyLimits = {
  /** Ids, codes and names. The default. */
  small: 4 * kib,
  /** A contact with a CAPTCHA token, a code with a password, or a response of an authenticator. */
  contact: 16 * kib,
  /** 4 KiB of `user_metadata` (24 KiB if escaped), a contact and a password. */
  metadata: 32 * kib,
  /** The ID token and access token of a provider, or a signed message of 20 KiB. */
  token: 32 * kib,
  /** User and app metadata and a password hash. Read after the token has been verified. */
  admin: 64 * kib,
} as const;

/**
 * A UUID of the path, in lower case.
 *
 * @throws AppError `validation_failed` with 404: the resource does not exist.
 */
export function uuidParameter<K extends string>(parameters: Readonly<Record<K, string>>, name: K): string {
  const value = parameters[name];
  if (!isUuid(value)) throw errors.validation_failed({ message: `${name} must be an UUID`, httpStatus: 404 });
  return value.toLowerCase();
}

/** Query parameters of paginated lists. */
export const pageQuery = {
  page: Type.Optional(Type.String({ description: 'Page number, starting at 1. Default 1.' })),
  per_page: Type.Optional(Type.String({ description: 'Items per page, at most 1000. Default 50.' })),
};

interface NumberedPage extends PageRequest {
  /** Starts at 1. */
  readonly number: number;
}

const defaultPerPage = 50;
/** Responses are built in memory. */
const maxPerPage = 1000;
/** Keeps the offset within the range of a bigint. */
const maxPage = 1_000_000_000;

/** Empty values are ignored. @throws AppError `validation_failed`. */
export function parsePage(query: { readonly page?: string; readonly per_page?: string }): NumberedPage {
  const number = parseCount('page', query.page) || 1;
  const perPage = Math.min(parseCount('per_page', query.per_page) || defaultPerPage, maxPerPage);
  return { number, limit: perPage, offset: (number - 1) * perPage };
}

function parseCount(name: string, text = ''): number {
  if (text === '') return 0;
  const count = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(count <= maxPage))
    throw errors.validation_failed({
      message: `Bad Pagination Parameters: ${name} must be a number from 0 to ${maxPage}`,
    });
  return count;
}

/**
 * Sets `X-Total-Count` and `Link`. `page` is the first query parameter: clients look for the digits
 * after the first `=`. The last page of an empty list is 0, as in GoTrue.
 *
 * @see RFC 8288 https://www.rfc-editor.org/rfc/rfc8288
 */
export function setPageHeaders(
  request: FastifyRequest,
  reply: FastifyReply,
  { page, total }: { readonly page: NumberedPage; readonly total: number },
): void {
  const last = Math.ceil(total / page.limit);
  const links = [
    ...(page.number < last ? [`<${pagePath(request, page.number + 1)}>; rel="next"`] : []),
    `<${pagePath(request, last)}>; rel="last"`,
  ];
  reply.header('x-total-count', total).header('link', links.join(', '));
}

/** Sets `Link` to the same list with other query parameters. */
export function setNextLink(
  request: FastifyRequest,
  reply: FastifyReply,
  parameters: Readonly<Record<string, string>>,
): void {
  reply.header('link', `<${pathWith(request, parameters)}>; rel="next"`);
}

function pagePath(request: FastifyRequest, page: number): string {
  return pathWith(request, { page: String(page) });
}

/** The path with these query parameters first, and then the others of the request. */
function pathWith(request: FastifyRequest, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(request.url, 'http://path.invalid');
  const others = [...url.searchParams].filter(([name]) => !Object.hasOwn(parameters, name));
  return `${url.pathname}?${new URLSearchParams([...Object.entries(parameters), ...others])}`;
}
