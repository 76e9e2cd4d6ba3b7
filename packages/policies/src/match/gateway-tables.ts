import type { Steps } from '@tollgate/kit/time';
import { HostMap, normalizeHost } from './hosts.ts';
import type { PathIndex } from './path-index.ts';
import { indexByPrecedence, type RankedMatch } from './ranked-matches.ts';
import type { RequestAttributes } from './request-match.ts';
import type { PathSegments } from './request-path.ts';
import type { RouteHit } from './route.ts';

/** The rules of a Gateway for one host. Gateways with the same rules share it. */
interface HostTable {
  readonly hits: readonly RouteHit[];
  /** One for each order of matches. */
  readonly indexes: readonly PathIndex<RequestAttributes, RouteHit>[];
}

/** A Gateway at a port. */
interface GatewayTable {
  /** As in Envoy, a host without a matching route does not fall back to a less specific one. */
  readonly routes: HostMap<HostTable>;
  /** They take requests that no route takes. Several for a host contradict each other. */
  readonly listeners: HostMap<readonly RouteHit[]>;
}

type GatewaysByName = ReadonlyMap<string, GatewayTable>;

/** Rules to add by host, then by gateway; none where rules are only removed. */
type AddedRules = ReadonlyMap<string, ReadonlyMap<string, readonly RouteHit[]>>;

/** The rules of Gateways by host. Immutable: a change shares the tables of all other hosts. */
export class GatewayTables {
  static readonly empty: GatewayTables = new GatewayTables(new Map(), []);
  readonly #byName: GatewaysByName;
  /** Gateways with the same rules, such as the ports for HTTP and HTTPS, are one. */
  readonly #distinct: readonly GatewayTable[];

  private constructor(byName: GatewaysByName, distinct: readonly GatewayTable[]) {
    this.#byName = byName;
    this.#distinct = distinct;
  }

  /** Adds and removes rules of routes. */
  *change(added: readonly RouteHit[], removed: ReadonlySet<RouteHit>): Steps<GatewayTables> {
    const changes = groupChanges(added, removed);
    const byName = new Map(this.#byName);
    const names = new Set([...changes.values()].flatMap((byGateway) => [...byGateway.keys()]));
    for (const name of names) {
      const { routes, listeners } = byName.get(name) ?? {};
      byName.set(name, { routes: new HostMap(routes), listeners: new HostMap(listeners) });
      yield;
    }
    for (const [host, byGateway] of changes) {
      const known = this.#distinct.flatMap(({ routes }) => routes.get(host) ?? []);
      for (const [name, rules] of byGateway) {
        const table = byName.get(name);
        if (table !== undefined) changeHost(table, { host, added: rules, removed, known });
      }
      yield;
    }
    for (const name of names) {
      const table = byName.get(name);
      if (table?.routes.isEmpty === true && table.listeners.isEmpty) byName.delete(name);
    }
    return byName.size === 0 ? GatewayTables.empty : new GatewayTables(byName, yield* findDistinct(byName));
  }

  /**
   * The rules that take a request by host and match: one at each gateway, because it is not known
   * at which of them the request arrived, and for each order in which gateways compare matches.
   */
  find(request: RequestAttributes, path: PathSegments): readonly RouteHit[] {
    const hits: RouteHit[] = [];
    const add = (hit: RouteHit): void => void (hits.includes(hit) || hits.push(hit));
    const find = (host: string): void => {
      for (const { routes, listeners } of this.#distinct)
        for (const index of routes.find(host)?.indexes ?? noIndex) {
          const hit = index?.find(request, path);
          if (hit === undefined) listeners.find(host)?.forEach(add);
          else add(hit);
        }
    };
    find(normalizeHost(request.host));
    // Some gateways compare the host with its final dot, which only `*` matches.
    if (hasFinalDot.test(request.host)) find('');
    return hits;
  }
}

function groupChanges(added: readonly RouteHit[], removed: ReadonlySet<RouteHit>): AddedRules {
  const changes = new Map<string, Map<string, RouteHit[]>>();
  const addAll = (hits: Iterable<RouteHit>, add: (hit: RouteHit, rules: RouteHit[]) => void): void => {
    for (const hit of hits)
      for (const host of hit.rule.hosts) {
        const byGateway = changes.get(host) ?? new Map<string, RouteHit[]>();
        changes.set(host, byGateway);
        for (const gateway of hit.rule.gateways) {
          const rules = byGateway.get(gateway) ?? [];
          byGateway.set(gateway, rules);
          add(hit, rules);
        }
      }
  };
  addAll(removed, () => undefined);
  addAll(added, (hit, rules) => rules.at(-1) === hit || rules.push(hit));
  return changes;
}

interface HostChange {
  readonly host: string;
  readonly added: readonly RouteHit[];
  readonly removed: ReadonlySet<RouteHit>;
  /** Tables of this host that Gateways have. */
  readonly known: HostTable[];
}

function changeHost({ routes, listeners }: GatewayTable, { host, added, removed, known }: HostChange): void {
  const own = Map.groupBy(added, ({ route }) => (route.kind === 'Gateway' ? 'listener' : 'route'));
  const change = (before: readonly RouteHit[] = [], more: readonly RouteHit[] = []) => [
    ...before.filter((hit) => !removed.has(hit)),
    ...more,
  ];
  const ofListeners = change(listeners.get(host), own.get('listener'));
  if (ofListeners.length === 0) listeners.delete(host);
  else listeners.set(host, ofListeners);
  const hits = change(routes.get(host)?.hits, own.get('route'));
  if (hits.length === 0) routes.delete(host);
  else routes.set(host, findOrCreate(hits, known));
}

function findOrCreate(hits: readonly RouteHit[], known: HostTable[]): HostTable {
  const isSame = (table: HostTable): boolean =>
    table.hits.length === hits.length && table.hits.every((hit, index) => hit === hits[index]);
  const found = known.find(isSame);
  if (found !== undefined) return found;
  const table: HostTable = { hits, indexes: indexByPrecedence(hits.flatMap(toMatches)) };
  known.push(table);
  return table;
}

function toMatches(hit: RouteHit): readonly RankedMatch<RouteHit>[] {
  const { kind, namespace, name, createdMs } = hit.route;
  const route = { createdMs, kind, name: `${namespace}/${name}` };
  return [false, true].flatMap((uncertain) => {
    const value = uncertain ? { ...hit, uncertain } : hit;
    return hit.rule.matches.flatMap((one) =>
      one.uncertain === uncertain ? [{ match: one.match, route, value }] : [],
    );
  });
}

function* findDistinct(byName: GatewaysByName): Steps<readonly GatewayTable[]> {
  const distinct: GatewayTable[] = [];
  for (const table of byName.values()) {
    const isSame = ({ routes, listeners }: GatewayTable): boolean =>
      routes.equals(table.routes) && listeners.equals(table.listeners);
    if (!distinct.some(isSame)) distinct.push(table);
    yield;
  }
  return distinct;
}

/** Only listeners take requests. */
const noIndex: readonly undefined[] = [undefined];

const hasFinalDot = /\.(?::\d*)?$/;
