import type { FastifyRequest } from 'fastify';
import { checkRedirect, type RedirectPolicy, redirectPolicy } from '../../domain/redirect-allow-list.ts';
import type { RouteDeps } from './api.ts';

type RedirectDeps = Pick<RouteDeps, 'settings' | 'logger'>;

/** Policies by the settings they are made from: globs are read once. */
const policies = new WeakMap<RouteDeps['settings'], RedirectPolicy>();

/**
 * Where the user is to be sent in the end: what the header or the query or the body calls `redirect_to`, else the page that sent the
 * request, if that is allowed; SITE_URL otherwise. Answered as it was sent, never changed.
 */
export function redirectTarget(
  request: FastifyRequest,
  body: { readonly redirect_to?: string | undefined } | undefined,
  { settings, logger }: RedirectDeps,
): string {
  const policy = policyOf(settings);
  const wanted = wantedTarget(request, body);
  for (const target of [wanted, request.headers.referer ?? '']) {
    if (target === '') continue;
    const verdict = checkRedirect(target, policy);
    if (verdict.ok) return target;
    if (target === wanted)
      logger.info(
        { request_id: request.id, reason: verdict.reason },
        'redirect_to refused, SITE_URL instead',
      );
  }
  return settings.siteUrl;
}

function wantedTarget(
  request: FastifyRequest,
  body: { readonly redirect_to?: string | undefined } | undefined,
): string {
  const { redirect_to: header } = request.headers;
  if (typeof header === 'string' && header !== '') return header;
  // Parsed boundary: the query is an object; a name that comes twice is a list, and that is no target.
  const { redirect_to: query } = request.query as { readonly redirect_to?: unknown };
  if (typeof query === 'string' && query !== '') return query;
  return body?.redirect_to ?? '';
}

function policyOf(settings: RouteDeps['settings']): RedirectPolicy {
  const known = policies.get(settings);
  if (known !== undefined) return known;
  const policy = redirectPolicy(settings.siteUrl, settings.uriAllowList);
  policies.set(settings, policy);
  return policy;
}
