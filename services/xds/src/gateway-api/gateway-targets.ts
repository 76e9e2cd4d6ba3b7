import { compareText } from '@tollgate/kit/text';
import type { Steps } from '@tollgate/kit/time';
import type { Route } from '@tollgate/proto/tollgate/policy/v1/access_config';
import type { KubeObject } from '../kube/reflector.ts';
import type { TargetResolution, TargetResolver } from '../policies/policy-source.ts';
import { findAncestors } from './ancestors.ts';
import { type Attachment, findAttachments, type Parents } from './attachment.ts';
import {
  type Gateway,
  labelsOf,
  type RouteKind,
  type RouteObject,
  readGateway,
  readRoute,
  routeKinds,
  type Values,
} from './objects.ts';
import { PolicyTargets, readTargets, type Target, type TargetedPolicy } from './policy-targets.ts';
import { PolicyPrecedence } from './precedence.ts';
import {
  type Applied,
  findAtListener,
  type PlacedRule,
  placeRules,
  toGatewayRoute,
  toRoute,
} from './resolve.ts';
import { type EnvoyGatewayObjects, UnenforcedPolicies } from './unenforced.ts';

/** Current objects by `namespace/name`. */
type Objects = ReadonlyMap<string, KubeObject>;

export interface GatewayObjects {
  readonly gateways: Objects;
  readonly routes: Readonly<Record<RouteKind, Objects>>;
  /** Keys are `/name`, since a Namespace is in none. */
  readonly namespaces: Objects;
  /** Undefined while they are not known. */
  readonly envoyGateway: () => EnvoyGatewayObjects | undefined;
  readonly notSyncedReason: () => string | undefined;
}

/** A route as it was read and resolved last. */
interface KnownRoute {
  readonly object: KubeObject;
  readonly route: RouteObject;
  readonly parents: Parents;
  readonly attachments: readonly Attachment[];
  resolved?: ResolvedRoute;
}

interface ResolvedRoute {
  /** The policies that it was resolved with, or that lead to the same. */
  targets: PolicyTargets;
  readonly placed: readonly PlacedRule[];
  /** The policies of each rule at each listener. */
  readonly applied: string;
  readonly route: Route;
}

/** Finds the routes of Gateway API that policies are for. Only what has changed is read again. */
export class GatewayTargets implements TargetResolver {
  readonly #objects: GatewayObjects;
  #parents: Parents | undefined;
  #known = new Map<string, KnownRoute>();
  /** The policies of the last run. */
  #targets: PolicyTargets | undefined;
  #gatewayRoutes = new Map<string, { readonly content: string; readonly route: Route }>();
  #routes = new Map<string, readonly Route[]>();

  constructor(objects: GatewayObjects) {
    this.#objects = objects;
  }

  notSyncedReason(): string | undefined {
    return this.#objects.notSyncedReason();
  }

  /** Gateways or namespaces have changed: all routes are attached again. */
  parentsChanged(): void {
    this.#parents = undefined;
  }

  *resolve(policies: readonly TargetedPolicy[]): Steps<TargetResolution> {
    if (this.notSyncedReason() !== undefined)
      return { routes: new Map(), problems: new Map(), ancestors: new Map() };
    this.#parents ??= this.#readParents();
    const { gateways } = this.#parents;
    const known = yield* this.#readRoutes(this.#parents);
    this.#known = known;
    const targets = placePolicies(policies, gateways, known);
    const byNamespace = new Map<string, Route[]>();
    const add = (namespace: string, route: Route) => {
      const routes = byNamespace.get(namespace);
      if (routes === undefined) byNamespace.set(namespace, [route]);
      else routes.push(route);
    };
    const envoyGateway = this.#objects.envoyGateway();
    const unenforced =
      envoyGateway && new UnenforcedPolicies(envoyGateway, (kind, id) => this.#labelsOf(kind, id));
    const precedence = new PolicyPrecedence();
    const holds = this.#compare(targets);
    for (const [key, route] of known) {
      if (route.attachments.length === 0) continue;
      const before = route.resolved;
      const resolved = before !== undefined && holds(key, before) ? before : resolveRoute(route, targets);
      resolved.targets = targets;
      route.resolved = resolved;
      for (const { name, attachment, ...applied } of resolved.placed) {
        unenforced?.addRule(route.route, name, attachment, listPolicies(applied));
        precedence.add(applied, attachment.gateway, attachment.listener);
      }
      add(route.object.namespace, resolved.route);
      yield;
    }
    this.#targets = targets;
    for (const gateway of gateways.values()) {
      for (const listener of gateway.listeners) {
        const applied = findAtListener(gateway, listener, targets);
        unenforced?.addListener(gateway, listener, listPolicies(applied));
        precedence.add(applied, gateway, listener);
      }
      const route = this.#resolveGateway(gateway, targets);
      if (route !== undefined) add(gateway.object.namespace, route);
    }
    this.#routes = keepSame(byNamespace, this.#routes);
    const gatewaysOf = ({ kind, namespace, name }: Target): readonly Gateway[] => {
      const id = `${namespace}/${name}`;
      const gateway = kind === 'Gateway' ? gateways.get(id) : undefined;
      if (gateway !== undefined) return [gateway];
      return (known.get(`${kind}/${id}`)?.attachments ?? []).map((attachment) => attachment.gateway);
    };
    const { problems } = targets;
    const ancestors = findAncestors(policies, gatewaysOf, { unenforced, precedence });
    return { routes: this.#routes, problems, ancestors };
  }

  findProblems(policies: readonly TargetedPolicy[]): TargetResolution['problems'] {
    const parents = this.#parents ?? this.#readParents();
    const known = new Map<string, KnownRoute>();
    for (const kind of routeKinds)
      for (const target of policies.flatMap(readTargets)) {
        const id = `${target.namespace}/${target.name}`;
        const object = target.kind === kind ? this.#objects.routes[kind].get(id) : undefined;
        if (object !== undefined)
          known.set(`${kind}/${id}`, attach(object, readRoute(kind, object), parents));
      }
    return placePolicies(policies, parents.gateways, known).problems;
  }

  /** Returns whether what was resolved before holds for these policies, too. */
  #compare(targets: PolicyTargets): (key: string, resolved: ResolvedRoute) => boolean {
    const before = this.#targets;
    if (before === undefined) return () => false;
    const changed = targets.findChanged(before);
    const changesGateways = [...changed].some((key) => key.startsWith('Gateway/'));
    return (key, resolved) => !changesGateways && resolved.targets === before && !changed.has(key);
  }

  /** Reads the current labels: a change of labels alone makes no new generation. */
  #labelsOf(kind: RouteKind | 'Gateway', id: string): Values {
    const { gateways, routes } = this.#objects;
    const object = (kind === 'Gateway' ? gateways : routes[kind]).get(id);
    return object === undefined ? {} : labelsOf(object);
  }

  #readParents(): Parents {
    const { gateways, namespaces } = this.#objects;
    const labels = (namespace: string) => {
      const object = namespaces.get(`/${namespace}`);
      return object && labelsOf(object);
    };
    return {
      gateways: new Map([...gateways].map(([id, object]) => [id, readGateway(object)])),
      labelsOf: labels,
    };
  }

  *#readRoutes(parents: Parents): Steps<Map<string, KnownRoute>> {
    const known = new Map<string, KnownRoute>();
    for (const kind of routeKinds)
      for (const [id, object] of this.#objects.routes[kind]) {
        const key = `${kind}/${id}`;
        const before = this.#known.get(key);
        const isSame = before?.object.uid === object.uid && before.object.generation === object.generation;
        if (before !== undefined && isSame && before.parents === parents) known.set(key, before);
        else {
          const route = before !== undefined && isSame ? before.route : readRoute(kind, object);
          known.set(key, attach(object, route, parents));
          yield;
        }
      }
    return known;
  }

  #resolveGateway(gateway: Gateway, targets: PolicyTargets): Route | undefined {
    const { id } = gateway.object;
    const route = toGatewayRoute(gateway, targets);
    if (route === undefined) {
      this.#gatewayRoutes.delete(id);
      return undefined;
    }
    const content = JSON.stringify(route.rules);
    const before = this.#gatewayRoutes.get(id);
    if (before?.content === content) return before.route;
    this.#gatewayRoutes.set(id, { content, route });
    return route;
  }
}

/** The access policies that apply at a place, each once. */
const listPolicies = ({ policy, overrides }: Applied): readonly string[] => [
  ...new Set(policy === '' ? overrides : [policy, ...overrides]),
];

function resolveRoute({ route, attachments, resolved }: KnownRoute, targets: PolicyTargets): ResolvedRoute {
  const placed = placeRules(route, attachments, targets);
  const applied = JSON.stringify(placed.map(({ policy, overrides }) => [policy, overrides]));
  const isSame = resolved !== undefined && resolved.applied === applied;
  return { targets, placed, applied, route: isSame ? resolved.route : toRoute(route, placed) };
}

const attach = (object: KubeObject, route: RouteObject, parents: Parents): KnownRoute => ({
  ...{ object, route, parents, attachments: findAttachments(route, parents) },
});

function placePolicies(
  policies: readonly TargetedPolicy[],
  gateways: Parents['gateways'],
  known: ReadonlyMap<string, KnownRoute>,
): PolicyTargets {
  return new PolicyTargets(
    policies,
    (target) => exists(target, gateways, known),
    ({ kind, namespace, name }) =>
      kind === 'Gateway' || known.get(`${kind}/${namespace}/${name}`)?.attachments.length !== 0,
  );
}

function exists(
  { kind, namespace, name, sectionName }: Target,
  gateways: Parents['gateways'],
  known: ReadonlyMap<string, KnownRoute>,
): boolean {
  const id = `${namespace}/${name}`;
  const parts = kind === 'Gateway' ? gateways.get(id)?.listeners : known.get(`${kind}/${id}`)?.route.rules;
  return parts?.some((part) => sectionName === undefined || part.name === sectionName) ?? false;
}

/** Sorts the routes, and keeps the lists of namespaces in which nothing has changed. */
function keepSame(
  byNamespace: ReadonlyMap<string, readonly Route[]>,
  before: ReadonlyMap<string, readonly Route[]>,
): Map<string, readonly Route[]> {
  return new Map(
    [...byNamespace].map(([namespace, routes]) => {
      const sorted = routes.toSorted((a, b) => compareText(a.kind, b.kind) || compareText(a.name, b.name));
      const known = before.get(namespace);
      const isSame =
        known?.length === sorted.length && known.every((route, index) => route === sorted[index]);
      return [namespace, known !== undefined && isSame ? known : sorted];
    }),
  );
}
