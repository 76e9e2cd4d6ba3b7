import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../errors.ts';

export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
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
 * after the first `=`.
 *
 * @see RFC 8288 https://www.rfc-editor.org/rfc/rfc8288
 */
export function setPageHeaders(
  request: FastifyRequest,
  reply: FastifyReply,
  { page, total }: { readonly page: NumberedPage; readonly total: number },
): void {
  const last = Math.max(1, Math.ceil(total / page.limit));
  const links = [
    ...(page.number < last ? [`<${pagePath(request, page.number + 1)}>; rel="next"`] : []),
    `<${pagePath(request, last)}>; rel="last"`,
  ];
  reply.header('x-total-count', total).header('link', links.join(', '));
}

function pagePath(request: FastifyRequest, page: number): string {
  const url = new URL(request.url, 'http://path.invalid');
  const others = [...url.searchParams].filter(([name]) => name !== 'page');
  return `${url.pathname}?${new URLSearchParams([['page', String(page)], ...others])}`;
}
