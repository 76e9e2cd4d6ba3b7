import { readRequestPath } from './request-path.ts';
import { findRoute, type RouteDemand, type RouteRule, type RouteRules } from './route-rules.ts';

/** What the rules say of a request, whoever makes it. */
export type RouteVerdict =
  | {
      readonly ok: true;
      /** The route that decides; undefined where none matches. */
      readonly route: RouteRule | undefined;
      readonly demand: RouteDemand;
    }
  /** Its path could be read in two ways. */
  | { readonly ok: false; readonly reason: string };

/** Finds the rule for a method and a path as it was sent, with or without a query. */
export function judgeRoute(rules: RouteRules, method: string, target: string): RouteVerdict {
  const read = readRequestPath(method, target);
  if (!read.ok) return read;
  const { segments, withoutParameters } = read.path;
  const route = findRoute(rules, method, segments);
  if (withoutParameters !== undefined && findRoute(rules, method, withoutParameters) !== route)
    return { ok: false, reason: 'another rule holds for it without the parameters of its segments (;)' };
  return { ok: true, route, demand: route?.demand ?? rules.fallback };
}
