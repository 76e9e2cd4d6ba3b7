import { compareText } from '@tollgate/kit/text';
import { PathIndex } from './path-index.ts';
import { comparePrecedence, type RouteOrder, routeOrders, tieBreakers } from './precedence.ts';
import { type CompiledMatch, type RequestAttributes, toEntry } from './request-match.ts';

/** A match of a rule of a route. */
export interface RankedMatch<Value> {
  readonly match: CompiledMatch;
  /** The oldest route goes first of equally specific matches. */
  readonly route: { readonly createdMs: number; readonly name: string; readonly kind?: string };
  readonly value: Value;
}

type Matches<Value> = readonly RankedMatch<Value>[];

/**
 * Indexes matches for one host by the precedence of Gateway API: the most specific match, then the
 * oldest route, then the first by name, then the first rule of the route. There is an index for
 * each order of matches in which these differ.
 */
export function indexByPrecedence<Value>(
  matches: Matches<Value>,
  orders: readonly [RouteOrder, ...RouteOrder[]] = routeOrders,
): readonly PathIndex<RequestAttributes, Value>[] {
  const [first, ...others] = orders;
  const sorted = sortMatches(matches, first);
  const differing = others.filter((order) => !isSorted(sorted, order));
  return [sorted, ...differing.map((order) => sortMatches(sorted, order))].map(
    (ranked) => new PathIndex(ranked.map(({ match, value }) => toEntry(match, value))),
  );
}

function sortMatches<Value>(matches: Matches<Value>, order: RouteOrder): Matches<Value> {
  return matches.length > 1 ? matches.toSorted((a, b) => compareRank(a, b, order)) : matches;
}

function isSorted<Value>(matches: Matches<Value>, order: RouteOrder): boolean {
  return matches.every((match, index) => {
    const before = matches[index - 1];
    return before === undefined || compareRank(before, match, order) <= 0;
  });
}

/** 0 for rules of the same route, which are in their order already. */
function compareRank<Value>(a: RankedMatch<Value>, b: RankedMatch<Value>, order: RouteOrder): number {
  return (
    comparePrecedence(a.match.precedence, b.match.precedence, order) ||
    a.route.createdMs - b.route.createdMs ||
    compareNames(a.route.name, b.route.name, order) ||
    compareText(a.route.kind ?? '', b.route.kind ?? '')
  );
}

function compareNames(a: string, b: string, order: RouteOrder): number {
  if (a === b) return 0;
  const toText = tieBreakers[order];
  return compareText(toText(a), toText(b));
}
