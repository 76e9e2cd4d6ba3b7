import type { Steps } from '@tollgate/kit/time';
import { HostMap, normalizeHost } from './hosts.ts';
import { PathIndex } from './path-index.ts';
import { comparePrecedence, type RouteOrder, routeOrders, tieBreakers } from './precedence.ts';
import { type CompiledMatch, type RequestAttributes, toEntry } from './request-match.ts';
import type { PathSegments } from './request-path.ts';

/** A rule of a route. */
export interface RouteEntry<Value> {
  /** Hosts and wildcards in lower case; `*` for every host. */
  readonly hosts: readonly string[];
  /** Any of them. */
  readonly matches: readonly CompiledMatch[];
  /** The route that it is a rule of. Of equally specific matches, the oldest goes first. */
  readonly route: { readonly createdMs: number; readonly name: string };
  readonly value: Value;
}

/**
 * Routes by the precedence of Gateway API: the most specific host, then the most specific match,
 * then the oldest route, then the first by name, then the first rule of the route. As in Envoy, a
 * host without a matching route does not fall back to a less specific one.
 */
export class RouteTable<Value> {
  readonly #hosts = new HostMap<PathIndex<RequestAttributes, Value>>();

  constructor(entries: readonly RouteEntry<Value>[], order: RouteOrder = 'gateway-api') {
    for (const [host, ranked] of rankByHost(entries)) this.#add(host, ranked, order);
  }

  /** Builds it in steps. */
  static *build<Value>(byHost: RankedByHost<Value>, order: RouteOrder): Steps<RouteTable<Value>> {
    const table = new RouteTable<Value>([]);
    for (const [host, ranked] of byHost) {
      table.#add(host, ranked, order);
      yield;
    }
    return table;
  }

  #add(host: string, ranked: readonly RankedMatch<Value>[], order: RouteOrder): void {
    const sorted = ranked.toSorted((a, b) => compareRank(a, b, order));
    this.#hosts.set(host, new PathIndex(sorted.map(({ match, value }) => toEntry(match, value))));
  }

  /** @param host default: that of the request, in the form of `normalizeHost` */
  find(
    request: RequestAttributes,
    path: PathSegments,
    host: string = normalizeHost(request.host),
  ): Value | undefined {
    return this.#hosts.find(host)?.find(request, path);
  }
}

/** A table for each order of matches in which these entries differ. */
export function* createTables<Value>(
  entries: readonly RouteEntry<Value>[],
): Steps<readonly RouteTable<Value>[]> {
  const [first = 'gateway-api', ...others] = routeOrders;
  const byHost = rankByHost(entries);
  const differing = new Set<RouteOrder>();
  for (const ranked of byHost.values()) {
    ranked.sort((a, b) => compareRank(a, b, first));
    for (const order of others) if (!isSorted(ranked, order)) differing.add(order);
    yield;
  }
  const tables: RouteTable<Value>[] = [];
  for (const order of [first, ...differing]) tables.push(yield* RouteTable.build(byHost, order));
  return tables;
}

function isSorted<Value>(ranked: readonly RankedMatch<Value>[], order: RouteOrder): boolean {
  return ranked.every((match, index) => {
    const before = ranked[index - 1];
    return before === undefined || compareRank(before, match, order) <= 0;
  });
}

type RankedByHost<Value> = Map<string, RankedMatch<Value>[]>;

function rankByHost<Value>(entries: readonly RouteEntry<Value>[]): RankedByHost<Value> {
  const byHost = new Map<string, RankedMatch<Value>[]>();
  for (const [rule, { hosts, matches, route, value }] of entries.entries())
    for (const host of new Set(hosts)) {
      const ranked = byHost.get(host) ?? [];
      byHost.set(host, ranked);
      for (const match of matches) ranked.push({ match, route, rule, value });
    }
  return byHost;
}

interface RankedMatch<Value> extends Pick<RouteEntry<Value>, 'route' | 'value'> {
  readonly match: CompiledMatch;
  /** Position in the list of entries. */
  readonly rule: number;
}

function compareRank<Value>(a: RankedMatch<Value>, b: RankedMatch<Value>, order: RouteOrder): number {
  return (
    comparePrecedence(a.match.precedence, b.match.precedence, order) ||
    a.route.createdMs - b.route.createdMs ||
    compareNames(a.route.name, b.route.name, order) ||
    a.rule - b.rule
  );
}

function compareNames(a: string, b: string, order: RouteOrder): number {
  if (a === b) return 0;
  const toText = tieBreakers[order];
  return compareText(toText(a), toText(b));
}

/** The order of bytes, as Kubernetes sorts names. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
