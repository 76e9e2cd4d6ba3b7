import {
  type Backend,
  clusterConfig,
  extAuthz,
  type Filter,
  type GatewayConfig,
  router,
  routesOf,
} from './gateway-config.ts';
import type { ManifestObject } from './manifest-object.ts';
import { hostOf, type ServiceReference } from './service-references.ts';

/** What Istio makes the configuration of a gateway from. */
export interface IstioInput {
  /** Values of the chart istiod. */
  readonly values: unknown;
  readonly httpRoute: ManifestObject;
  readonly authorizationPolicy: ManifestObject;
  readonly envoyFilter: ManifestObject;
  /** All that there are in the cluster. */
  readonly services: readonly (ServiceReference & { readonly grpc: boolean })[];
}

/** Parts of the values and policies that are looked at; their definitions are with Istio. */
interface Values {
  readonly meshConfig: {
    readonly extensionProviders: readonly {
      readonly name: string;
      readonly envoyExtAuthzGrpc: {
        readonly service: string;
        readonly port: number;
        readonly timeout: string;
        readonly failOpen: boolean;
        readonly statusOnError: string;
      };
    }[];
  };
}
interface ConfigPatch {
  readonly applyTo: string;
  readonly match: {
    readonly context: string;
    readonly listener?: {
      readonly filterChain: { readonly filter: { readonly subFilter: { readonly name: string } } };
    };
  };
  readonly patch: { readonly operation: string; readonly value: object };
}

/** The configuration that Istio would give the Envoy of a gateway, in the parts that matter here: its names of clusters, and patches after all else. */
export function asIstio(input: IstioInput): GatewayConfig {
  const { values, httpRoute, authorizationPolicy, envoyFilter, services } = input;
  // Parsed boundary: examples of ours.
  const { meshConfig } = values as Values;
  const { action, provider: wanted } = authorizationPolicy.spec as {
    readonly action: string;
    readonly provider: { readonly name: string };
  };
  const { configPatches } = envoyFilter.spec as { readonly configPatches: readonly ConfigPatch[] };
  const provider = meshConfig.extensionProviders.find(({ name }) => name === wanted.name)?.envoyExtAuthzGrpc;
  if (action !== 'CUSTOM' || provider === undefined) throw new Error(`there is no provider ${wanted.name}`);

  const namespace = httpRoute.metadata.namespace ?? 'default';
  const clusterOf = ({ name, namespace: other = namespace, port }: Backend) =>
    outbound({ host: hostOf(name, other), port });
  const config: GatewayConfig = {
    listener: {
      name: 'http',
      http_filters: [
        extAuthz('envoy.filters.http.ext_authz', {
          cluster: outbound({ host: provider.service, port: provider.port }),
          authority: outbound({ host: provider.service, port: provider.port }).replaceAll('|', '_.'),
          timeout: provider.timeout,
          failOpen: provider.failOpen,
          statusOnError: Number(provider.statusOnError),
        }),
        router,
      ],
    },
    virtualHost: { name: 'shop', domains: ['*'], routes: routesOf(httpRoute.spec, clusterOf) },
    // A gateway knows all Services, and which of their ports speak HTTP/2.
    clusters: services.map((service) =>
      clusterConfig({ name: outbound(service), ...service, http2: service.grpc }),
    ),
  };
  return configPatches.reduce(patched, config);
}

const outbound = ({ host, port }: ServiceReference) => `outbound|${port}||${host}`;

function patched(config: GatewayConfig, { applyTo, match, patch }: ConfigPatch): GatewayConfig {
  const { listener, virtualHost } = config;
  const { operation, value } = patch;
  if (match.context !== 'GATEWAY') throw new Error(`a gateway is not in the context ${match.context}`);
  if (applyTo === 'HTTP_FILTER' && operation === 'INSERT_BEFORE') {
    const before = match.listener?.filterChain.filter.subFilter.name;
    const at = listener.http_filters.findIndex(({ name }) => name === before);
    if (at < 0) throw new Error(`there is no filter ${before}`);
    // Parsed boundary: Envoy judges it.
    return {
      ...config,
      listener: { ...listener, http_filters: listener.http_filters.toSpliced(at, 0, value as Filter) },
    };
  }
  // The virtual host has nothing of what is merged into it.
  if (applyTo === 'VIRTUAL_HOST' && operation === 'MERGE')
    return { ...config, virtualHost: { ...virtualHost, ...value } };
  throw new Error(`nothing here knows ${operation} of ${applyTo}`);
}
