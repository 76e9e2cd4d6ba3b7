import { HostMap, normalizeHost } from '../../src/match/hosts.ts';
import type { PathIndex } from '../../src/match/path-index.ts';
import type { RouteOrder } from '../../src/match/precedence.ts';
import { indexByPrecedence } from '../../src/match/ranked-matches.ts';
import {
  type CompiledMatch,
  compileMatch,
  type RequestAttributes,
  type RequestMatch,
} from '../../src/match/request-match.ts';
import { type PathSegments, parseRequestPath } from '../../src/match/request-path.ts';
import type { RandomRule } from './random-routes.ts';

/** Rules of one order by the most specific host, and then by precedence. */
export interface RouteTable<Value> {
  find(request: RequestAttributes, path: PathSegments): Value | undefined;
}

/** A rule whose matches are compiled. */
export type RouteEntry<Value> = Omit<RandomRule, 'matches'> & {
  readonly matches: readonly CompiledMatch[];
  readonly value: Value;
};

export function tableOf<Value>(entries: readonly RouteEntry<Value>[], order: RouteOrder): RouteTable<Value> {
  const byHost = Map.groupBy(
    entries.flatMap(({ hosts, matches, route, value }) =>
      [...new Set(hosts)].flatMap((host) => matches.map((match) => ({ host, match, route, value }))),
    ),
    ({ host }) => host,
  );
  const indexes = new HostMap<PathIndex<RequestAttributes, Value>>();
  for (const [host, matches] of byHost)
    for (const index of indexByPrecedence(matches, [order])) indexes.set(host, index);
  return { find: (request, path) => indexes.find(normalizeHost(request.host))?.find(request, path) };
}

/** Compiles rules, whose values are their positions. */
export function createTable(rules: readonly RandomRule[]): RouteTable<number> {
  const entries = rules.map((rule, value) => ({ ...rule, matches: rule.matches.map(compileValid), value }));
  return tableOf(entries, 'gateway-api');
}

function compileValid(match: RequestMatch) {
  const result = compileMatch(match);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.match;
}

/** The segments of a path without alternatives. */
export function segmentsOf(path: string): PathSegments {
  const parsed = parseRequestPath('GET', path);
  if (!parsed.ok || parsed.path.own === undefined) throw new Error(`${path} is no path`);
  return parsed.path.own;
}

/** A request that has only what a test needs. */
export function toRequest(request: Partial<RequestAttributes> = {}): RequestAttributes {
  return { method: 'GET', host: 'a.test', path: '/', headers: {}, ...request };
}
