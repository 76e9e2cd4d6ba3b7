import {
  type Backend,
  backendsOf,
  clusterConfig,
  extAuthz,
  type Filter,
  type GatewayConfig,
  router,
  routesOf,
} from './gateway-config.ts';
import type { ManifestObject } from './manifest-object.ts';
import { hostOf } from './service-references.ts';

/** What Envoy Gateway makes a configuration from. All are in one namespace, and for one Gateway. */
export interface EnvoyGatewayInput {
  readonly gateway: ManifestObject;
  readonly httpRoute: ManifestObject;
  readonly securityPolicy: ManifestObject;
  readonly patchPolicy: ManifestObject;
}

/** Parts of the policies that are looked at; their definitions are with Envoy Gateway. */
interface SecurityPolicySpec {
  readonly extAuth: {
    readonly failOpen: boolean;
    readonly timeout: string;
    readonly grpc: { readonly backendRefs: readonly Backend[] };
  };
}
interface Patch {
  readonly type: string;
  readonly name: string;
  readonly operation: {
    readonly op: string;
    readonly path?: string;
    readonly jsonPath?: string;
    readonly value: unknown;
  };
}

/**
 * The configuration that Envoy Gateway would give Envoy, in the parts that matter here: its names of listeners and filters, the
 * order of filters, and patches after all else.
 */
export function asEnvoyGateway(input: EnvoyGatewayInput): GatewayConfig {
  const { gateway, httpRoute, securityPolicy, patchPolicy } = input;
  const namespace = gateway.metadata.namespace ?? 'default';
  // Parsed boundary: examples of ours.
  const { listeners } = gateway.spec as { readonly listeners: readonly { readonly name: string }[] };
  const { extAuth } = securityPolicy.spec as SecurityPolicySpec;
  const { jsonPatches } = patchPolicy.spec as { readonly jsonPatches: readonly Patch[] };
  const [authBackend] = extAuth.grpc.backendRefs;
  if (authBackend === undefined) throw new Error('the SecurityPolicy has no backend');

  const clusterOf = (backend: Backend) => `${backend.namespace ?? namespace}/${backend.name}/${backend.port}`;
  const clusterFor = (backend: Backend, http2: boolean) =>
    clusterConfig({
      name: clusterOf(backend),
      host: hostOf(backend.name, backend.namespace ?? namespace),
      port: backend.port,
      http2,
    });
  const policy = `envoy.filters.http.ext_authz/securitypolicy/${namespace}/${securityPolicy.metadata.name}`;
  const filter = extAuthz(policy, {
    cluster: clusterOf(authBackend),
    authority: `${authBackend.name}.${authBackend.namespace ?? namespace}:${authBackend.port}`,
    timeout: `${Number.parseInt(extAuth.timeout, 10) / 1000}s`,
    failOpen: extAuth.failOpen,
  });
  // Filters of policies are off, and on for the routes that the policy is for.
  const on = {
    [policy]: { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', config: {} },
  };
  const config: GatewayConfig = {
    listener: {
      name: `${namespace}/${gateway.metadata.name}/${listeners[0]?.name}`,
      http_filters: [{ ...filter, disabled: true }, router],
    },
    virtualHost: {
      name: 'shop',
      domains: ['*'],
      routes: routesOf(httpRoute.spec, clusterOf).map((route) => ({ ...route, typed_per_filter_config: on })),
    },
    clusters: [
      clusterFor(authBackend, true),
      ...backendsOf(httpRoute.spec).map((backend) => clusterFor(backend, false)),
    ],
  };
  return jsonPatches.reduce(patched, config);
}

const types = 'type.googleapis.com/envoy.config';

/** A configuration after a patch: RFC 6902 and RFC 9535, as far as the examples use them. */
function patched(config: GatewayConfig, { type, name, operation }: Patch): GatewayConfig {
  const { op, path = '', jsonPath = '', value } = operation;
  const { listener, virtualHost, clusters } = config;
  if (op !== 'add') throw new Error(`nothing here knows the operation ${op}`);
  if (type === `${types}.cluster.v3.Cluster` && path === '' && jsonPath === '')
    // Parsed boundary: Envoy judges it.
    return { ...config, clusters: [...clusters, value as object] };
  if (name !== listener.name) throw new Error(`there is no ${type} ${name}, but ${listener.name}`);
  if (type === `${types}.listener.v3.Listener`) {
    const [, before] = /^\.\.http_filters\[\?\(@\.name == '([^']+)'\)\]$/.exec(jsonPath) ?? [];
    const at = listener.http_filters.findIndex((filter) => filter.name === before);
    if (at < 0 || path !== '') throw new Error(`nothing is found at ${jsonPath}${path}`);
    // Parsed boundary: Envoy judges it.
    return {
      ...config,
      listener: { ...listener, http_filters: listener.http_filters.toSpliced(at, 0, value as Filter) },
    };
  }
  if (type === `${types}.route.v3.RouteConfiguration` && jsonPath === '$.virtual_hosts[*]')
    return { ...config, virtualHost: { ...virtualHost, [path]: value } };
  throw new Error(`nothing here knows a patch of ${type} at ${jsonPath}${path}`);
}
