import { create } from '@bufbuild/protobuf';
import { compareText } from '@tollgate/kit/text';
import {
  type Route,
  type RouteRule,
  RouteRuleSchema,
  RouteSchema,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import type { KubeObject } from '../kube/reflector.ts';
import type { Attachment } from './attachment.ts';
import { toMatchJson } from './matches.ts';
import type { Gateway, Listener, RouteObject } from './objects.ts';
import type { PolicyTargets, Target } from './policy-targets.ts';

/** The policies that apply to a rule at a listener, by `namespace/name`. */
export interface Applied extends Pick<RouteRule, 'policy' | 'overrides'> {
  /** Policies of less specific targets that `policy` replaces. */
  readonly replaced: readonly string[];
}

/** A rule of a route at a listener. */
export interface PlacedRule extends Applied {
  /** Index of the rule in the object. */
  readonly index: number;
  /** Undefined for a rule without a name. */
  readonly name: string | undefined;
  readonly attachment: Attachment;
}

const targetOf = (kind: string, { namespace, name }: KubeObject, sectionName?: string): Target => ({
  ...{ kind, namespace, name, sectionName },
});

/** The policies of a listener: its own, else that of the Gateway. */
export function findAtListener({ object }: Gateway, { name }: Listener, policies: PolicyTargets): Applied {
  const targets = [targetOf('Gateway', object, name), targetOf('Gateway', object)];
  const found = targets.map((target) => policies.find(target));
  return { ...chooseFirst(found), overrides: policies.findOverrides(targets) };
}

/** The first of policies by target, from the most specific one on, replaces the others. */
function chooseFirst(found: readonly (string | undefined)[]): Pick<Applied, 'policy' | 'replaced'> {
  const replaced: string[] = [];
  let policy = '';
  for (const id of found) {
    if (id === undefined || id === '' || id === policy) continue;
    if (policy === '') policy = id;
    else if (!replaced.includes(id)) replaced.push(id);
  }
  return { policy, replaced };
}

/** Every rule of a route at every listener that accepts it. */
export function placeRules(
  { kind, object, rules }: RouteObject,
  attachments: readonly Attachment[],
  policies: PolicyTargets,
): readonly PlacedRule[] {
  const ofRoute = policies.find(targetOf(kind, object));
  const places = attachments.map((attachment) => ({
    attachment,
    inherited: findAtListener(attachment.gateway, attachment.listener, policies),
  }));
  return rules.flatMap(({ name }, index) => {
    const ofRule = name === undefined ? undefined : policies.find(targetOf(kind, object, name));
    return places.map(({ attachment, inherited: { policy, replaced, overrides } }) => ({
      ...chooseFirst([ofRule, ofRoute, policy, ...replaced]),
      ...{ overrides, index, name, attachment },
    }));
  });
}

/** The route as auth servers get it. */
export function toRoute(route: RouteObject, placed: readonly PlacedRule[]): Route {
  const byRule = Map.groupBy(placed, ({ index }) => index);
  const rules = route.rules.flatMap(({ name = '', matches }, index) => {
    const common = { sectionName: name, matches: matches.map((match) => toMatchJson(route.kind, match)) };
    return mergePlaces(byRule.get(index) ?? []).map((place) => ({ ...common, ...place }));
  });
  return makeRoute(route.kind, route.object, rules);
}

/** The entry of a Gateway, for requests that no route takes; undefined without a policy. */
export function toGatewayRoute(gateway: Gateway, policies: PolicyTargets): Route | undefined {
  const rules = gateway.listeners.map((listener) => {
    const { policy, overrides } = findAtListener(gateway, listener, policies);
    return {
      ...{ sectionName: listener.name, hosts: [listener.hostname ?? '*'], policy, overrides },
      gateways: [formatGateway(gateway, listener)],
    };
  });
  if (rules.every(({ policy }) => policy === '')) return undefined;
  return makeRoute('Gateway', gateway.object, rules);
}

type Place = Pick<RouteRule, 'hosts' | 'policy' | 'overrides' | 'gateways'>;

function makeRoute(
  kind: string,
  { name, createdMs }: KubeObject,
  rules: readonly (Place & Partial<Pick<RouteRule, 'sectionName' | 'matches'>>)[],
): Route {
  return create(RouteSchema, {
    ...{ kind, name, createdMs: BigInt(createdMs) },
    rules: rules.map((rule) => create(RouteRuleSchema, rule)),
  });
}

/**
 * Listeners of a port share its table of hosts; with TLS, each has one of its own, which the server
 * name of the connection chooses and not the host of the request.
 */
function formatGateway({ object }: Gateway, { name, port, hasTls }: Listener): string {
  return `${object.id}:${port}${hasTls ? `/${name}` : ''}`;
}

/** Places with the same policies, as few as possible. */
function mergePlaces(placed: readonly PlacedRule[]): readonly Place[] {
  const single = placed.map(({ policy, overrides, attachment: { gateway, listener, hosts } }) => ({
    ...{ policy, overrides, hosts: [...hosts], gateways: [formatGateway(gateway, listener)] },
  }));
  const byGateway = mergeBy(single, 'gateways', 'hosts');
  return mergeBy(byGateway, 'hosts', 'gateways');
}

/** Joins the lists `joined` of places that have the same list `same` and the same policies. */
function mergeBy(
  places: readonly Place[],
  same: 'hosts' | 'gateways',
  joined: 'hosts' | 'gateways',
): readonly Place[] {
  const groups = Map.groupBy(places, (place) =>
    JSON.stringify([place.policy, place.overrides, place[same].toSorted(compareText)]),
  );
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const all = [...new Set(group.flatMap((place) => place[joined]))].toSorted(compareText);
    return [{ ...first, [joined]: all }];
  });
}
