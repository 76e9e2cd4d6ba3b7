import { compileMatch, type RequestAttributes, type RequestMatch } from '../../src/match/request-match.ts';
import { type PathSegments, parseRequestPath } from '../../src/match/request-path.ts';
import { type RouteEntry, RouteTable } from '../../src/match/route-table.ts';
import type { RandomRule } from './random-routes.ts';

/** Compiles rules, whose values are their positions. */
export function createTable(rules: readonly RandomRule[]): RouteTable<number> {
  return new RouteTable(
    rules.map(
      ({ hosts, matches, route }, value): RouteEntry<number> => ({
        hosts,
        matches: matches.map(compileValid),
        route,
        value,
      }),
    ),
  );
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
