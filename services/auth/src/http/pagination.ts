import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../errors.ts';

/** A part of a list: how many, after how many. */
export interface PageRequest {
  readonly limit: number;
  readonly offset: number;
}

/** The part, and how many there are in all. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/** Query of a list in pages. */
export const pageQuery = {
  page: Type.Optional(Type.String({ description: 'Number of the page, from 1 on. Default 1.' })),
  per_page: Type.Optional(Type.String({ description: 'Items a page, 1000 at most. Default 50.' })),
};

/** A page of a list, counted from 1. */
export interface WantedPage extends PageRequest {
  readonly number: number;
}

const defaultPerPage = 50;
/** Whoever asks for more gets this many: an answer has to be made in memory. */
const maxPerPage = 1000;
/** Beyond it the offset is no number that a database takes. */
const maxPage = 1_000_000_000;

/** Reads which page is wanted; empty texts are absent ones. @throws AppError `validation_failed`. */
export function readPage(query: { readonly page?: string; readonly per_page?: string }): WantedPage {
  const number = readCount('page', query.page) || 1;
  const perPage = Math.min(readCount('per_page', query.per_page) || defaultPerPage, maxPerPage);
  return { number, limit: perPage, offset: (number - 1) * perPage };
}

function readCount(name: string, text = ''): number {
  if (text === '') return 0;
  const count = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(count <= maxPage))
    throw errors.validation_failed({
      message: `Bad Pagination Parameters: ${name} must be a number from 0 to ${maxPage}`,
    });
  return count;
}

/**
 * Says how many there are in all, and where the next and the last page are. `page` is the first name of each query: clients look for
 * the digit after the first `=`.
 *
 * @see RFC 8288 https://www.rfc-editor.org/rfc/rfc8288
 */
export function setPageHeaders(
  request: FastifyRequest,
  reply: FastifyReply,
  { page, total }: { readonly page: WantedPage; readonly total: number },
): void {
  const last = Math.max(1, Math.ceil(total / page.limit));
  const links = [
    ...(page.number < last ? [`<${pathOf(request, page.number + 1)}>; rel="next"`] : []),
    `<${pathOf(request, last)}>; rel="last"`,
  ];
  reply.header('x-total-count', total).header('link', links.join(', '));
}

function pathOf(request: FastifyRequest, page: number): string {
  const url = new URL(request.url, 'http://path.invalid');
  const others = [...url.searchParams].filter(([name]) => name !== 'page');
  return `${url.pathname}?${new URLSearchParams([['page', String(page)], ...others])}`;
}
