import cors from '@fastify/cors';
import { compareText } from '@tollgate/kit/text';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import type { Api } from './api.ts';

const allowedHeaders = [
  'Accept',
  'Authorization',
  'Content-Type',
  'X-Client-IP',
  'X-Client-Info',
  'X-JWT-AUD',
  'x-use-cookie',
  'apikey',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
  'X-Svc-Session-Tag',
];
const exposedHeaders = [
  'X-Total-Count',
  'Link',
  'Retry-After',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
];

/** Lets browsers of any origin call the API: it knows its callers by their token, not by cookies. */
export function addCors(api: Api, { corsAllowedHeaders }: Pick<Settings, 'corsAllowedHeaders'>): void {
  void api.register(cors, {
    origin: '*',
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [...allowedHeaders, ...corsAllowedHeaders],
    exposedHeaders,
    credentials: true,
    strictPreflight: false,
  });
}

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

/**
 * Refuses requests by their URL, before the body is read: those to a path that does not exist, and those with a NUL, which PostgreSQL
 * can neither store nor look for.
 */
export function addUrlRefusals(api: Api): void {
  api.addHook('onRequest', (request, _reply, done) => {
    if (request.url.includes('%00'))
      done(errors.validation_failed({ message: 'The URL must not contain the character NUL (%00)' }));
    else if (request.is404) done(errors.not_found());
    else done();
  });
}

/** Request headers that name the version of the API, in the order they are looked for. */
const versionHeaders = ['x-supabase-api-version', 'x-svc-api-version'] as const;

/** From this version on errors have the new shape. */
const newErrorsSince = '2024-01-01';

/** Does the caller want errors in the new shape? A version is a date; what is none counts as absent. */
export function wantsNewErrors(request: Pick<FastifyRequest, 'headers'>): boolean {
  const version = versionHeaders.map((name) => request.headers[name]).find((value) => value !== undefined);
  return typeof version === 'string' && isDate(version) && version >= newErrorsSince;
}

/** Sends the version back: clients read the shape of an error from it. */
export function echoApiVersion(request: FastifyRequest, reply: FastifyReply): void {
  if (!wantsNewErrors(request)) return;
  for (const name of versionHeaders) {
    if (request.headers[name] !== undefined) reply.header(name, newErrorsSince);
  }
}

function isDate(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
}
