import type { FastifyReply, FastifyRequest } from 'fastify';

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
