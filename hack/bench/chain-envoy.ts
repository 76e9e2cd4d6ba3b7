import { type Envoy, startEnvoy } from '@tollgate/testkit/envoy';
import { freePort } from '@tollgate/testkit/tcp';

/** Which filters stand before the application; each of them is a listener of its name. */
export const chains = {
  alone: [],
  authz: ['ext_authz'],
  limits: ['ratelimit'],
  both: ['ext_authz', 'ratelimit'],
} as const satisfies Record<string, readonly ('ext_authz' | 'ratelimit')[]>;

/** A name of {@link chains}. */
export type ChainName = keyof typeof chains;

/** Domain of the rules that the chains ask about. */
export const chainDomain = 'chain';

const extensions = 'type.googleapis.com/envoy.extensions.filters';
const namespace = 'envoy.filters.http.ext_authz';

/**
 * Starts one Envoy with a listener for each chain. The application is a listener of it, too, so
 * that it costs next to nothing.
 */
export async function startChainEnvoy(ports: {
  readonly extAuthz: number;
  readonly ratelimit: number;
}): Promise<Envoy> {
  const application = await freePort();
  const listeners = Object.entries(chains).map(([name, filters]) =>
    listener(name, 0, {
      routes: [{ match: { prefix: '/' }, route: { cluster: 'application', rate_limits: rateLimits } }],
      filters: filters.map((filter) => httpFilters[filter]),
    }),
  );
  const answer = {
    match: { prefix: '/' },
    direct_response: { status: 200, body: { inline_string: '{"id":7}\n' } },
  };
  const config = {
    static_resources: {
      listeners: [...listeners, listener('application', application, { routes: [answer], filters: [] })],
      clusters: [
        cluster('application', application),
        { ...cluster('ext_authz', ports.extAuthz), ...http2 },
        { ...cluster('ratelimit', ports.ratelimit), ...http2 },
      ],
    },
  };
  return startEnvoy({ config, concurrency: 1 });
}

/**
 * Both are there in every chain, so that all do the same but for the filters: plan and user where
 * they are known.
 */
const rateLimits = [
  {
    actions: ['plan', 'user_id'].map((key) => ({
      metadata: {
        descriptor_key: key,
        source: 'DYNAMIC',
        default_value: 'anonymous',
        metadata_key: { key: namespace, path: [{ key }] },
      },
    })),
  },
];

const httpFilters = {
  ext_authz: {
    name: namespace,
    typed_config: {
      '@type': `${extensions}.http.ext_authz.v3.ExtAuthz`,
      transport_api_version: 'V3',
      grpc_service: { envoy_grpc: { cluster_name: 'ext_authz' }, timeout: '1s' },
    },
  },
  ratelimit: {
    name: 'envoy.filters.http.ratelimit',
    typed_config: {
      '@type': `${extensions}.http.ratelimit.v3.RateLimit`,
      domain: chainDomain,
      timeout: '1s',
      failure_mode_deny: true,
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
      },
    },
  },
};

const router = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': `${extensions}.http.router.v3.Router` },
};

function listener(
  name: string,
  port: number,
  how: { readonly routes: object[]; readonly filters: object[] },
) {
  const manager = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type': `${extensions}.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: name,
      route_config: { virtual_hosts: [{ name, domains: ['*'], routes: how.routes }] },
      http_filters: [...how.filters, router],
    },
  };
  return { name, address: address(port), filter_chains: [{ filters: [manager] }] };
}

function cluster(name: string, port: number) {
  const endpoint = { endpoint: { address: address(port) } };
  return { name, load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] } };
}

const http2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

function address(port: number) {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
