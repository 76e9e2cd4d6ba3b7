import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { gatewayDefinitions } from '../../charts/support/gateway-crds.ts';
import { openKubeCalls, writeAll } from '../xds/objects.ts';

const crds = join(import.meta.dirname, '../../../crds');
const gatewayApi = 'gateway.networking.k8s.io';

export const routesPerPolicy = 5;
/** Policies are spread over this many namespaces, each that of a team. */
const namespaces = 50;

export const hostOf = (route: number): string => `app-${route}.team-${teamOf(policyOf(route))}.example.com`;
const policyOf = (route: number): number => Math.floor(route / routesPerPolicy);
const teamOf = (policy: number): number => policy % namespaces;

/** The access that edits switch between. */
export type AccessType = 'Authenticated' | 'Denied';

/** AccessPolicies and the routes that they are for. */
export interface PolicyObjects {
  /** Writes policies and their routes up to this number of policies, each with this access. */
  fill(policies: number, type?: AccessType): Promise<void>;
  /** Edits a policy; answers when that was done, by `monotonicMs`. */
  editPolicy(policy: number, type: AccessType): Promise<number>;
  /** Gives a route a path besides its other ones. */
  editRoute(route: number, path: string): Promise<number>;
  close(): void;
}

/** Writes a Gateway, and the namespaces of the teams. */
export async function createPolicyObjects(kube: KubeApiserver): Promise<PolicyObjects> {
  const kinds = new Set(['GatewayClass', 'Gateway', 'HTTPRoute', 'GRPCRoute', 'SecurityPolicy']);
  for (const file of ['accesspolicies.yaml', 'ratelimitconfigs.yaml'])
    await kube.apply(readFileSync(join(crds, file), 'utf8'));
  await kube.apply(gatewayDefinitions(kinds));
  const calls = openKubeCalls(kube);
  const applyTo = (group: string, namespace: string, manifest: Manifest): Promise<number> => {
    const { kind, metadata } = manifest;
    const plural = kind === 'AccessPolicy' ? 'accesspolicies' : `${kind.toLowerCase()}s`;
    const path = `/apis/${group}/namespaces/${namespace}/${plural}/${metadata.name}`;
    return calls.apply(path, JSON.stringify({ apiVersion: group, ...manifest }));
  };
  const applyRoute = (route: number, paths: readonly string[]) =>
    applyTo(`${gatewayApi}/v1`, `team-${teamOf(policyOf(route))}`, toRoute(route, paths));
  const applyPolicy = (policy: number, type: AccessType) =>
    applyTo('policy.tollgate.dev/v1alpha1', `team-${teamOf(policy)}`, toPolicy(policy, type));
  for (const name of ['infra', ...Array.from({ length: namespaces }, (_, team) => `team-${team}`)])
    await calls.apply(
      `/api/v1/namespaces/${name}`,
      JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
    );
  await applyTo(`${gatewayApi}/v1`, 'infra', gateway);
  let filled = 0;
  return {
    async fill(policies, type = 'Authenticated') {
      const first = filled;
      filled = policies;
      const count = (policies - first) * routesPerPolicy;
      await writeAll(count, (index) => applyRoute(first * routesPerPolicy + index, []));
      await writeAll(policies - first, (index) => applyPolicy(first + index, type));
    },
    editPolicy: applyPolicy,
    editRoute: (route, path) => applyRoute(route, [path]),
    close: calls.close,
  };
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

const gateway: Manifest = {
  kind: 'Gateway',
  metadata: { name: 'main' },
  spec: {
    gatewayClassName: 'any',
    listeners: [{ name: 'http', protocol: 'HTTP', port: 80, allowedRoutes: { namespaces: { from: 'All' } } }],
  },
};

/** The path of checks, which count no limit. */
export const openPath = '/open';

function toPolicy(policy: number, type: AccessType): Manifest {
  const first = policy * routesPerPolicy;
  const names = Array.from({ length: routesPerPolicy }, (_, index) => `route-${first + index}`);
  const access = { type, ...(type === 'Authenticated' && { credentials: ['User', 'ApiKey'] }) };
  return {
    kind: 'AccessPolicy',
    metadata: { name: `policy-${policy}` },
    spec: {
      targetRefs: names.map((name) => ({ group: gatewayApi, kind: 'HTTPRoute', name })),
      access,
      rules: [
        { matches: [{ path: { type: 'PathPrefix', value: openPath } }], limits: [] },
        {
          matches: [{ path: { type: 'PathPrefix', value: '/orders/export' }, methods: ['GET'] }],
          access: { roles: ['auditor'] },
          limits: ['export'],
        },
      ],
      limits: [
        {
          ...{ name: 'per-user', by: ['User'], requests: 60, per: 'Minute' },
          plans: { pro: { requests: 600 }, enterprise: { unlimited: true } },
        },
        { name: 'export', only: true, by: ['Organization'], requests: 10, per: 'Hour' },
      ],
    },
  };
}

function toRoute(route: number, morePaths: readonly string[]): Manifest {
  const toMatch = (value: string) => ({ path: { type: 'PathPrefix', value } });
  return {
    kind: 'HTTPRoute',
    metadata: { name: `route-${route}` },
    spec: {
      parentRefs: [{ namespace: 'infra', name: 'main' }],
      hostnames: [hostOf(route)],
      rules: [
        { matches: ['/orders', openPath, ...morePaths].map(toMatch) },
        { matches: [{ path: { type: 'Exact', value: '/health' }, method: 'GET' }] },
      ],
    },
  };
}
