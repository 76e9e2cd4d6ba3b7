import { compareText } from '@tollgate/kit/compare-text';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errors } from '../../errors.ts';
import type { Api } from './api.ts';

/** Methods that are answered with 405 where the path has none of them; browsers ask for OPTIONS everywhere. */
const methods = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'];

/**
 * Watches which routes are added from now on. The function that it answers is called when all are there: then their other
 * methods are refused with 405 and `Allow`.
 *
 * @see RFC 9110 §15.5.6 https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6
 */
export function watchRoutes(api: Api): () => void {
  const known = new Map<string, Set<string>>();
  let watching = true;
  api.addHook('onRoute', ({ url, method }) => {
    if (!watching) return;
    const own = known.get(url) ?? new Set<string>();
    known.set(url, own);
    for (const one of [method].flat()) own.add(one);
  });
  return () => {
    watching = false;
    for (const [url, allowed] of known) {
      const refused = methods.filter((method) => !allowed.has(method));
      if (refused.length === 0) continue;
      const refuse = refusal([...allowed].toSorted(compareText));
      api.route({
        url,
        method: refused,
        exposeHeadRoute: false,
        schema: { hide: true },
        // Before the body is looked at.
        onRequest: refuse,
        handler: refuse,
      });
    }
  };
}

function refusal(allowed: readonly string[]) {
  return async (_request: FastifyRequest, reply: FastifyReply): Promise<never> => {
    reply.header('allow', allowed.join(', '));
    throw errors.method_not_allowed();
  };
}
