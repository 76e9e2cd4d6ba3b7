import { readFileSync } from 'node:fs';
import { readDocument } from '@tollgate/yaml/fields';

/** The YAML of docs/limits.md that starts with a comment. */
export function getExample(comment: string): string {
  const page = readFileSync(new URL('../../../../docs/limits.md', import.meta.url), 'utf8');
  const block = page.split('```yaml\n').find((text) => text.startsWith(comment));
  return block?.slice(0, block.indexOf('```')) ?? '';
}

interface PerRoute {
  readonly rate_limits: readonly object[];
}

/** The configuration of the rate limit filter in such an example of a route. */
export function getRouteExample(comment: string): PerRoute {
  const parsed = readDocument(getExample(comment), (value) => {
    // Parsed boundary: Envoy checks it.
    const fields = value as { typed_per_filter_config: Record<string, PerRoute | undefined> };
    return fields.typed_per_filter_config['envoy.filters.http.ratelimit'];
  });
  if (!parsed.ok || parsed.value === undefined) throw new Error(`docs/limits.md has no example '${comment}'`);
  return parsed.value;
}

interface EnvoyOptions {
  readonly grpcPort: number;
  readonly upstreamPort: number;
  /** Configuration of the rate limit filter, for the one route. */
  readonly perRoute: object;
  /** Filters before the rate limit filter. */
  readonly filters?: readonly object[];
}

/** Envoy's configuration: one listener and route, limited in the domain `demo`. */
export function envoyConfig({ grpcPort, upstreamPort, perRoute, filters = [] }: EnvoyOptions): object {
  const cluster = (name: string, port: number, http2: boolean) => ({
    name,
    type: 'STATIC',
    connect_timeout: '10s',
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: [
            { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } } },
          ],
        },
      ],
    },
    ...(http2
      ? {
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
              '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        }
      : {}),
  });
  const rateLimit = {
    name: 'envoy.filters.http.ratelimit',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit',
      domain: 'demo',
      // Generous: the test machine is busy, and Envoy lets requests pass when no answer came in
      // time.
      timeout: '20s',
      failure_mode_deny: true,
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
      },
    },
  };
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const route = {
    match: { prefix: '/' },
    response_headers_to_add: [
      {
        header: {
          key: 'x-store-failure',
          value: '%DYNAMIC_METADATA(envoy.filters.http.ratelimit:store_failure)%',
        },
      },
    ],
    route: { cluster: 'upstream' },
    typed_per_filter_config: { 'envoy.filters.http.ratelimit': perRoute },
  };
  return {
    static_resources: {
      listeners: [
        {
          name: 'ingress',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [
            {
              filters: [
                {
                  name: 'envoy.filters.network.http_connection_manager',
                  typed_config: {
                    '@type':
                      'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
                    stat_prefix: 'ingress',
                    route_config: { virtual_hosts: [{ name: 'app', domains: ['*'], routes: [route] }] },
                    http_filters: [...filters, rateLimit, router],
                  },
                },
              ],
            },
          ],
        },
      ],
      clusters: [cluster('ratelimit', grpcPort, true), cluster('upstream', upstreamPort, false)],
    },
  };
}
