import { HostMap, normalizeHost } from './hosts.ts';
import { PathIndex } from './path-index.ts';
import { type CompiledMatch, comparePrecedence, type RequestAttributes, toEntry } from './request-match.ts';
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
  readonly #hosts: HostMap<PathIndex<RequestAttributes, Value>>;

  constructor(entries: readonly RouteEntry<Value>[]) {
    const byHost = new Map<string, RankedMatch<Value>[]>();
    for (const [rule, { hosts, matches, route, value }] of entries.entries())
      for (const host of new Set(hosts)) {
        const ranked = byHost.get(host) ?? [];
        byHost.set(host, ranked);
        for (const match of matches) ranked.push({ match, route, rule, value });
      }
    this.#hosts = new HostMap();
    for (const [host, ranked] of byHost) {
      const sorted = ranked.sort(compareRank).map(({ match, value }) => toEntry(match, value));
      this.#hosts.set(host, new PathIndex(sorted));
    }
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

interface RankedMatch<Value> extends Pick<RouteEntry<Value>, 'route' | 'value'> {
  readonly match: CompiledMatch;
  /** Position in the list of entries. */
  readonly rule: number;
}

function compareRank<Value>(a: RankedMatch<Value>, b: RankedMatch<Value>): number {
  return (
    comparePrecedence(a.match, b.match) ||
    a.route.createdMs - b.route.createdMs ||
    compareText(a.route.name, b.route.name) ||
    a.rule - b.rule
  );
}

/** The order of bytes, as Kubernetes sorts names. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
