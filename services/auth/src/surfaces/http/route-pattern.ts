import type { FastifyRequest } from 'fastify';

/** The route of a request as OpenTelemetry and OpenAPI write it, `/admin/users/{user_id}`; undefined when it met none. */
export function routePattern(request: Pick<FastifyRequest, 'routeOptions'>): string | undefined {
  const { url } = request.routeOptions;
  return url === undefined || url === '*' ? undefined : inBraces(url);
}

/** Rewrites `/admin/users/:user_id` as `/admin/users/{user_id}`. */
function inBraces(url: string): string {
  return url.replaceAll(/:(\w+)/g, '{$1}');
}

/** The values of a route's parameters, by name. */
export function routeParameters(
  request: Pick<FastifyRequest, 'params' | 'routeOptions'>,
): [string, string][] {
  if (routePattern(request) === undefined) return [];
  // Parsed boundary: the router makes an object of texts.
  return Object.entries((request.params ?? {}) as Readonly<Record<string, string>>);
}
