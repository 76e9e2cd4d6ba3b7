/** A cluster of Envoy that leads to a port of a Service. */
export interface GatewayCluster {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly http2: boolean;
}

/** A filter of Envoy, as far as it is looked at. */
export interface Filter {
  readonly name: string;
  readonly [field: string]: unknown;
}

/** What a control plane tells an Envoy that is a gateway with one listener. */
export interface GatewayConfig {
  readonly listener: { readonly name: string; readonly http_filters: readonly Filter[] };
  readonly virtualHost: Readonly<Record<string, unknown>>;
  readonly clusters: readonly object[];
}

/** The part of an HTTPRoute that is looked at. */
interface HttpRouteSpec {
  readonly rules: readonly {
    readonly matches: readonly { readonly path: { readonly value: string } }[];
    readonly filters?: readonly {
      readonly urlRewrite: { readonly path: { readonly replacePrefixMatch: string } };
    }[];
    readonly backendRefs: readonly Backend[];
  }[];
}

/** A Service that a Gateway leads to. */
export interface Backend {
  readonly name: string;
  readonly namespace?: string;
  readonly port: number;
}

/** The routes of Envoy that an HTTPRoute becomes; it goes by path alone. */
export function routesOf(spec: unknown, clusterOf: (backend: Backend) => string): readonly object[] {
  // Parsed boundary: an example of ours; Envoy refuses routes that lack something.
  const { rules } = spec as HttpRouteSpec;
  return rules.flatMap(({ matches, filters = [], backendRefs: [backend] }) =>
    matches.map(({ path: { value } }) => {
      if (backend === undefined) throw new Error(`the rule for ${value} has no backend`);
      const rewrite = filters[0]?.urlRewrite.path.replacePrefixMatch;
      return {
        match: value === '/' ? { prefix: '/' } : { path_separated_prefix: value },
        route: {
          cluster: clusterOf(backend),
          ...(rewrite !== undefined && {
            regex_rewrite: { pattern: { regex: `^${value}/*` }, substitution: rewrite },
          }),
        },
      };
    }),
  );
}

/** The backends that an HTTPRoute names. */
export function backendsOf(spec: unknown): readonly Backend[] {
  // Parsed boundary: an example of ours.
  return (spec as HttpRouteSpec).rules.flatMap(({ backendRefs }) => backendRefs);
}

/** The filter that asks the auth server. */
export function extAuthz(
  name: string,
  settings: {
    readonly cluster: string;
    /** Without it, it would be the name of the cluster, which has characters that HTTP/2 does not allow there. */
    readonly authority: string;
    readonly timeout: string;
    readonly failOpen: boolean;
    readonly statusOnError?: number;
  },
): Filter {
  return {
    name,
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
      transport_api_version: 'V3',
      grpc_service: {
        envoy_grpc: { cluster_name: settings.cluster, authority: settings.authority },
        timeout: settings.timeout,
      },
      failure_mode_allow: settings.failOpen,
      ...(settings.statusOnError !== undefined && { status_on_error: { code: settings.statusOnError } }),
    },
  };
}

/** The filter that each list of filters ends with. */
export const router: Filter = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

/** A cluster with the addresses of a Service. */
export function clusterConfig({ name, host, port, http2 }: GatewayCluster): object {
  return {
    name,
    type: 'STRICT_DNS',
    ...(http2 && {
      typed_extension_protocol_options: {
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
          '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
    }),
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [{ endpoint: { address: { socket_address: { address: host, port_value: port } } } }],
        },
      ],
    },
  };
}

/** The same as one file. */
export function bootstrapOf({ listener, virtualHost, clusters }: GatewayConfig): object {
  const connectionManager = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type':
        'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
      stat_prefix: 'ingress',
      use_remote_address: true,
      normalize_path: true,
      merge_slashes: true,
      route_config: { virtual_hosts: [virtualHost] },
      http_filters: listener.http_filters,
    },
  };
  return {
    static_resources: {
      listeners: [
        {
          name: listener.name,
          address: { socket_address: { address: '0.0.0.0', port_value: 10_080 } },
          filter_chains: [{ filters: [connectionManager] }],
        },
      ],
      clusters,
    },
  };
}
