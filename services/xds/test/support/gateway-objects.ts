import { runSteps } from '@tollgate/kit/time';
import type { PolicyResource } from '@tollgate/policies/definition/spec';
import { GatewayTargets } from '../../src/gateway-api/gateway-targets.ts';
import type { KubeObject } from '../../src/kube/reflector.ts';
import type { TargetResolution } from '../../src/policies/policy-source.ts';

/** An object `namespace/name` as a reflector reads it. */
export function makeObject(id: string, spec: unknown, given: Partial<KubeObject> = {}): KubeObject {
  const [namespace = '', name = ''] = id.split('/');
  return {
    ...{ id, namespace, name, uid: id, order: id, generation: 1, createdMs: 0, resourceVersion: '1' },
    ...{ manifest: { metadata: { namespace, name }, spec }, ...given },
  };
}

/** A namespace with labels, as a reflector reads it. */
export const makeNamespace = (name: string, labels: Readonly<Record<string, string>>): KubeObject =>
  makeObject(`/${name}`, {}, { manifest: { metadata: { name, labels } } });

/** A policy with these targets, each `Kind/name` or `Kind/name/section`. */
export function makeTargeted(
  id: string,
  targets: readonly string[],
  { createdMs = 0, overrides }: { createdMs?: number; overrides?: PolicyResource['spec']['overrides'] } = {},
) {
  const targetRefs = targets.map((target) => {
    const [kind, name = '', sectionName] = target.split('/');
    // The kinds of these tests are those of the definition.
    return { group: 'gateway.networking.k8s.io', kind: kind as 'Gateway', name, sectionName } as const;
  });
  const object = makeObject(id, { targetRefs }, { createdMs });
  const { namespace, name } = object;
  return { object, resource: { namespace, name, spec: { targetRefs, overrides } } };
}

interface World {
  readonly gateways?: readonly KubeObject[];
  readonly httpRoutes?: readonly KubeObject[];
  readonly grpcRoutes?: readonly KubeObject[];
  readonly namespaces?: readonly KubeObject[];
  readonly securityPolicies?: readonly KubeObject[];
  readonly gatewayClasses?: readonly KubeObject[];
  /** Undefined while objects of Envoy Gateway are not known. */
  readonly authServices?: readonly string[] | undefined;
}

/** A resolver of these objects, which can be replaced. */
export function makeTargets(world: World) {
  const toMap = (objects: readonly KubeObject[] = []) => new Map(objects.map((one) => [one.id, one]));
  const maps = {
    gateways: toMap(world.gateways),
    routes: { HTTPRoute: toMap(world.httpRoutes), GRPCRoute: toMap(world.grpcRoutes) },
    namespaces: toMap(world.namespaces),
  };
  const envoyGateway = world.authServices && {
    authServices: new Set(world.authServices),
    securityPolicies: toMap(world.securityPolicies),
    gatewayClasses: toMap(world.gatewayClasses),
  };
  const targets = new GatewayTargets({
    ...{ ...maps, envoyGateway: () => envoyGateway },
    notSyncedReason: () => undefined,
  });
  return {
    ...maps,
    targets,
    resolve: (...policies: Parameters<GatewayTargets['resolve']>[0]): TargetResolution =>
      runSteps(targets.resolve(policies)),
  };
}

/** Rules in short: `HTTPRoute orders/rule: policy +override @ hosts at gateways`. */
export function listRules({ routes }: TargetResolution, namespace = 'shop'): readonly string[] {
  return (routes.get(namespace) ?? []).flatMap(({ kind, name, rules }) =>
    rules.map(({ sectionName, policy, overrides, hosts, gateways }) => {
      const section = sectionName === '' ? '' : `/${sectionName}`;
      const policies = [policy === '' ? 'none' : policy, ...overrides.map((one) => `+${one}`)].join(' ');
      return `${kind} ${name}${section}: ${policies} @ ${hosts.join(' ')} at ${gateways.join(' ')}`;
    }),
  );
}
