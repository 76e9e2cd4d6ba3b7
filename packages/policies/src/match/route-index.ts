import { runSteps, type Steps } from '@tollgate/kit/time';
import { HostMap, normalizeHost } from './hosts.ts';
import type { CompiledMatch, RequestAttributes } from './request-match.ts';
import type { PathSegments } from './request-path.ts';
import { createTables, type RouteEntry, type RouteTable } from './route-table.ts';

/** A rule of a route at some gateways, with the policies that hold there. */
export interface RouteRule {
  /** Empty if the rule has no name. */
  readonly sectionName: string;
  /** Hosts and wildcards in lower case; `*` for every host. */
  readonly hosts: readonly string[];
  /** Any of them; one that could not be compiled is `uncertain`. */
  readonly matches: readonly RouteMatch[];
  /** `namespace/name` of the policy that applies; empty if there is none. */
  readonly policy: string;
  /** Names of policies whose overrides hold in addition. */
  readonly overrides: readonly string[];
  /** Gateways, each with a port, and with a listener if that has TLS, that have this rule. */
  readonly gateways: readonly string[];
}

interface RouteMatch {
  readonly match: CompiledMatch;
  /** It is unknown which requests match: what no more specific match takes is denied. */
  readonly uncertain: boolean;
  /** Names of headers that it compares, in lower case. */
  readonly headers: readonly string[];
}

/** An HTTPRoute or a GRPCRoute; or a Gateway, whose rules are its listeners. */
export interface Route {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly createdMs: number;
  readonly rules: readonly RouteRule[];
}

/** The route that a gateway has matched. */
export interface RouteReference {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Name of the rule; empty if it has none. */
  readonly sectionName: string;
}

/** The rule of a route that takes a request. */
export interface RouteHit {
  readonly route: Route;
  readonly rule: RouteRule;
  readonly uncertain: boolean;
}

/** The routes of a Gateway at a port, and its listeners. */
interface Gateway {
  /** One for each order of matches. */
  readonly tables: readonly RouteTable<RouteHit>[];
  /** They take requests that no route takes. */
  readonly listeners: HostMap<RouteHit>;
}

/** Rules of a route that have the same name, or none. */
interface Section {
  readonly hits: readonly RouteHit[];
  /** Whether all of them have the same policies. */
  readonly isUniform: boolean;
  /** Built when a request needs them. */
  gateways: readonly Gateway[] | undefined;
}

/** Sections by route, then by the name of the rule. */
type Sections = ReadonlyMap<string, ReadonlyMap<string, Section>>;

/** All routes of Gateway API. */
export class RouteIndex {
  readonly size: number;
  /** Names of headers that matches compare, in lower case. */
  readonly headers: ReadonlySet<string>;
  readonly #gateways: readonly Gateway[];
  readonly #sections: Sections;

  private constructor(routes: readonly Route[], gateways: readonly Gateway[], sections: Sections) {
    this.size = routes.length;
    const matches = routes.flatMap(({ rules }) => rules.flatMap((rule) => rule.matches));
    this.headers = new Set(matches.flatMap(({ headers }) => headers));
    this.#gateways = gateways;
    this.#sections = sections;
  }

  static *build(routes: readonly Route[]): Steps<RouteIndex> {
    const hits = routes.flatMap(toHits);
    yield;
    const sections = new Map<string, Map<string, Section>>();
    for (const [key, own] of Map.groupBy(hits, ({ route }) => keyOf(route))) {
      sections.set(key, createSections(own));
      yield;
    }
    return new RouteIndex(routes, yield* createGateways(hits), sections);
  }

  /**
   * The rules that take a request by host and match: one at each gateway, because it is not known
   * at which of them the request arrived, and for each order in which gateways compare matches.
   */
  find(request: RequestAttributes, path: PathSegments): readonly RouteHit[] {
    return findAtGateways(this.#gateways, request, path);
  }

  /**
   * The rules of a route that a gateway has matched; several if other policies hold at other
   * gateways. Undefined if the route is not known.
   */
  findOf(
    reference: RouteReference,
    request: RequestAttributes,
    path: PathSegments,
  ): readonly RouteHit[] | undefined {
    const section = this.#sections.get(keyOf(reference))?.get(reference.sectionName);
    if (section === undefined || section.isUniform) return section?.hits.slice(0, 1);
    section.gateways ??= runSteps(createGateways(section.hits));
    const found = findAtGateways(section.gateways, request, path);
    return found.length === 0 ? section.hits : found;
  }
}

function keyOf({ kind, namespace, name }: Omit<RouteReference, 'sectionName'>): string {
  return `${kind}/${namespace}/${name}`;
}

function toHits(route: Route): readonly RouteHit[] {
  return route.rules.map((rule) => ({ route, rule, uncertain: false }));
}

function createSections(hits: readonly RouteHit[]): Map<string, Section> {
  const sections = new Map<string, Section>();
  for (const [name, own] of Map.groupBy(hits, ({ rule }) => rule.sectionName)) {
    const isUniform =
      new Set(own.map(({ rule }) => JSON.stringify([rule.policy, rule.overrides]))).size === 1;
    sections.set(name, { hits: own, isUniform, gateways: undefined });
  }
  return sections;
}

/** Gateways with the same rules, such as the ports for HTTP and HTTPS, are one. */
function* createGateways(hits: readonly RouteHit[]): Steps<readonly Gateway[]> {
  const byGateway = new Map<string, number[]>();
  for (const [index, { rule }] of hits.entries())
    for (const gateway of rule.gateways) {
      const own = byGateway.get(gateway) ?? [];
      byGateway.set(gateway, own);
      own.push(index);
    }
  const distinct = new Map([...byGateway.values()].map((indexes) => [indexes.join(), indexes]));
  const gateways: Gateway[] = [];
  for (const indexes of distinct.values())
    gateways.push(yield* createGateway(indexes.flatMap((index) => hits[index] ?? [])));
  return gateways;
}

function* createGateway(hits: readonly RouteHit[]): Steps<Gateway> {
  const listeners = new HostMap<RouteHit>();
  const entries: RouteEntry<RouteHit>[] = [];
  for (const hit of hits) {
    const { route, rule } = hit;
    if (route.kind === 'Gateway') for (const host of rule.hosts) listeners.set(host, hit);
    else entries.push(...toEntries(hit));
  }
  return { tables: yield* createTables(entries), listeners };
}

function toEntries(hit: RouteHit): readonly RouteEntry<RouteHit>[] {
  const { namespace, name, createdMs } = hit.route;
  const route = { createdMs, name: `${namespace}/${name}` };
  return [false, true].flatMap((uncertain) => {
    const matches = hit.rule.matches.filter((one) => one.uncertain === uncertain).map(({ match }) => match);
    const value = uncertain ? { ...hit, uncertain } : hit;
    return matches.length === 0 ? [] : [{ hosts: hit.rule.hosts, matches, route, value }];
  });
}

function findAtGateways(
  gateways: readonly Gateway[],
  request: RequestAttributes,
  path: PathSegments,
): readonly RouteHit[] {
  const host = normalizeHost(request.host);
  const hits: RouteHit[] = [];
  const find = (at: string): void => {
    for (const { tables, listeners } of gateways)
      for (const table of tables) {
        const hit = table.find(request, path, at) ?? listeners.find(at);
        if (hit !== undefined && !hits.includes(hit)) hits.push(hit);
      }
  };
  find(host);
  // Some gateways compare the host with its final dot, which only `*` matches.
  if (hasFinalDot.test(request.host)) find('');
  return hits;
}

const hasFinalDot = /\.(?::\d*)?$/;
