import type { FastifyRequest } from 'fastify';

/**
 * The URL of a request, at the console: its target may name another host, or begin with two
 * slashes.
 *
 * @see RFC 9112 §3.2.2
 */
export function requestUrl({ url: target }: Pick<FastifyRequest, 'url'>, externalUrl: string): URL {
  const url = new URL(externalUrl);
  const path = target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, '');
  const query = path.indexOf('?');
  url.pathname = query === -1 ? path : path.slice(0, query);
  url.search = query === -1 ? '' : path.slice(query);
  return url;
}
