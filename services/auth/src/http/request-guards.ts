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

/** Allows all origins: callers are authenticated by tokens, not by cookies. */
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

/** Methods that get a 405 if the path does not support them. OPTIONS is left to CORS. */
const methods = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'];

/**
 * Records the routes that are added from now on. The returned function must be called after the
 * last one; it adds routes that reject other methods with 405 and `Allow`.
 *
 * @see RFC 9110 §15.5.6 https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6
 */
export function trackRoutes(api: Api): () => void {
  const known = new Map<string, Set<string>>();
  let watching = true;
  api.addHook('onRoute', ({ url, method }) => {
    if (!watching) return;
    const allowed = known.get(url) ?? new Set<string>();
    known.set(url, allowed);
    for (const one of [method].flat()) allowed.add(one);
  });
  return () => {
    watching = false;
    for (const [url, allowed] of known) {
      const rejected = methods.filter((method) => !allowed.has(method));
      if (rejected.length === 0) continue;
      const reject = rejectMethod([...allowed].toSorted(compareText));
      api.route({
        url,
        method: rejected,
        exposeHeadRoute: false,
        schema: { hide: true },
        // Before the body is read.
        onRequest: reject,
        handler: reject,
      });
    }
  };
}

function rejectMethod(allowed: readonly string[]) {
  return async (_request: FastifyRequest, reply: FastifyReply): Promise<never> => {
    reply.header('allow', allowed.join(', '));
    throw errors.method_not_allowed();
  };
}

/**
 * Rejects unknown paths, and URLs with NUL, which PostgreSQL does not support, before the body is
 * read.
 */
export function addUrlChecks(api: Api): void {
  api.addHook('onRequest', (request, _reply, done) => {
    if (request.url.includes('%00'))
      done(errors.validation_failed({ message: 'The URL must not contain the character NUL (%00)' }));
    else if (request.is404) done(errors.not_found());
    else done();
  });
}

/** Request headers with the API version, in order of precedence. */
const versionHeaders = ['x-supabase-api-version', 'x-svc-api-version'] as const;

/** Versions since this one have the new error format. */
const newErrorsSince = '2024-01-01';

/** Whether the caller expects the new error format. A version that is not a date is ignored. */
export function wantsNewErrors(request: Pick<FastifyRequest, 'headers'>): boolean {
  const version = versionHeaders.map((name) => request.headers[name]).find((value) => value !== undefined);
  return typeof version === 'string' && isDate(version) && version >= newErrorsSince;
}

/** Clients detect the error format by the version in the response. */
export function echoApiVersion(request: FastifyRequest, reply: FastifyReply): void {
  if (!wantsNewErrors(request)) return;
  for (const name of versionHeaders) {
    if (request.headers[name] !== undefined) reply.header(name, newErrorsSince);
  }
}

function isDate(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
}
