import { runSteps, type Steps } from '@tollgate/kit/time';
import { GatewayTables } from './gateway-tables.ts';
import type { RequestAttributes } from './request-match.ts';
import type { PathSegments } from './request-path.ts';
import type { Route, RouteHit, RouteReference } from './route.ts';

/** Rules of a route that have the same name, or none. */
interface Section {
  readonly hits: readonly RouteHit[];
  /** Whether all of them have the same policies. */
  readonly isUniform: boolean;
  /** Built when a request needs them. */
  gateways: GatewayTables | undefined;
}

/** The parts of a route that do not depend on other routes. */
interface IndexedRoute {
  readonly route: Route;
  /** One for each rule. */
  readonly hits: readonly RouteHit[];
  /** Sections by the name of the rule. Built when a gateway says that it has matched the route. */
  sections: ReadonlyMap<string, Section> | undefined;
  /** Names of headers that matches compare, in lower case. */
  readonly headers: readonly string[];
}

interface Contents {
  readonly routes: ReadonlyMap<Route, IndexedRoute>;
  /** By kind, namespace and name. */
  readonly byReference: ReadonlyMap<string, IndexedRoute>;
  readonly gateways: GatewayTables;
}

/** All routes of Gateway API. */
export class RouteIndex {
  static readonly empty: RouteIndex = new RouteIndex({
    ...{ routes: new Map(), byReference: new Map(), gateways: GatewayTables.empty },
  });
  /** Names of headers that matches compare, in lower case. */
  readonly headers: ReadonlySet<string>;
  readonly #contents: Contents;

  private constructor(contents: Contents) {
    this.#contents = contents;
    const headers = new Set<string>();
    for (const route of contents.routes.values()) for (const name of route.headers) headers.add(name);
    this.headers = headers;
  }

  get size(): number {
    return this.#contents.routes.size;
  }

  /**
   * Indexes routes. What `before` has of the same routes is shared, so that it takes as long as
   * there are changes. Returns `before` if there are none.
   */
  static *build(list: Iterable<Route>, before: RouteIndex = RouteIndex.empty): Steps<RouteIndex> {
    const known = before.#contents;
    const routes = new Map<Route, IndexedRoute>();
    const added: IndexedRoute[] = [];
    for (const route of list) {
      const indexed = known.routes.get(route) ?? indexRoute(route);
      if (!known.routes.has(route)) added.push(indexed);
      routes.set(route, indexed);
      yield;
    }
    if (added.length === 0 && routes.size === known.routes.size) return before;
    const byReference = new Map(known.byReference);
    const removed = new Set<RouteHit>();
    for (const [route, { hits }] of known.routes) {
      if (routes.has(route)) continue;
      byReference.delete(keyOf(route));
      for (const hit of hits) removed.add(hit);
    }
    for (const indexed of added) byReference.set(keyOf(indexed.route), indexed);
    const hits = added.flatMap((indexed) => indexed.hits);
    const gateways = yield* known.gateways.change(hits, removed);
    return new RouteIndex({ routes, byReference, gateways });
  }

  /** The rules that take a request by host and match, at any gateway. */
  find(request: RequestAttributes, path: PathSegments): readonly RouteHit[] {
    return this.#contents.gateways.find(request, path);
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
    const { byReference } = this.#contents;
    const route = byReference.get(keyOf(reference));
    if (route === undefined) return undefined;
    route.sections ??= createSections(route.hits);
    const section = route.sections.get(reference.sectionName);
    if (section === undefined || section.isUniform) return section?.hits.slice(0, 1);
    section.gateways ??= runSteps(GatewayTables.empty.change(section.hits, new Set()));
    const found = section.gateways.find(request, path);
    return found.length === 0 ? section.hits : found;
  }
}

function keyOf({ kind, namespace, name }: Omit<RouteReference, 'sectionName'>): string {
  return `${kind}/${namespace}/${name}`;
}

function indexRoute(route: Route): IndexedRoute {
  const hits = route.rules.map((rule) => ({ route, rule, uncertain: false }));
  const headers = route.rules.flatMap(({ matches }) => matches.flatMap((match) => match.headers));
  return { route, hits, headers, sections: undefined };
}

function createSections(hits: readonly RouteHit[]): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>();
  for (const [name, own] of Map.groupBy(hits, ({ rule }) => rule.sectionName)) {
    const policies = new Set(own.map(({ rule }) => JSON.stringify([rule.policy, rule.overrides])));
    sections.set(name, { hits: own, isUniform: policies.size === 1, gateways: undefined });
  }
  return sections;
}
