import { join } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { Test } from 'tap';
import type { RotatingCertificates } from './certificates.ts';

/** The namespace of dynamic metadata in which the filter keeps who makes the request. */
const metadataNamespace = 'envoy.filters.http.ext_authz';

/** The ext_authz filter. It fails closed, with 503 when the auth server does not respond. */
export function extAuthzFilter(timeout = answerTimeout): object {
  return {
    name: 'envoy.filters.http.ext_authz',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
      transport_api_version: 'V3',
      grpc_service: { envoy_grpc: { cluster_name: 'ext_authz' }, timeout },
      failure_mode_allow: false,
      status_on_error: { code: 'ServiceUnavailable' },
    },
  };
}

/**
 * Descriptors of who makes a request: each user; each user by plan, with the limit of their own if
 * they have one, and all without a token together; each role.
 */
export const identityRateLimits: readonly object[] = [
  { actions: [metadata('user_id')] },
  {
    actions: [
      metadata('plan', { default_value: 'anonymous' }),
      metadata('user_id', { skip_if_absent: true }),
    ],
    limit: { dynamic_metadata: { metadata_key: metadataKey('limit') } },
  },
  { actions: [metadata('role')] },
];

/**
 * A route without limits, whose application also receives the limit that Envoy has for the user.
 */
export const whoamiPath = '/whoami';

function whoamiRoute(cluster: string): object {
  const value = `%DYNAMIC_METADATA(${metadataNamespace}:limit)%`;
  return {
    match: { path: whoamiPath },
    route: { cluster },
    request_headers_to_add: [{ header: { key: 'x-limit', value } }],
  };
}

/** An action that adds a field of the identity to a descriptor. */
export function metadata(key: string, whenAbsent: object = {}): object {
  return {
    metadata: { descriptor_key: key, source: 'DYNAMIC', metadata_key: metadataKey(key), ...whenAbsent },
  };
}

function metadataKey(key: string): object {
  return { key: metadataNamespace, path: [{ key }] };
}

/** An Envoy in front of an application. */
export interface EnvoyConfigOptions {
  readonly upstreamPort: number;
  /** Used in turn. */
  readonly limiters: ServerCluster;
  /** They differ in `failureModeDeny`. */
  readonly listeners: readonly ListenerOptions[];
  /** Auth servers that decide in turn before limits are counted. */
  readonly extAuthz?: ServerCluster;
  /**
   * The descriptors of each request, as a route's `rate_limits`. Default: one with the `x-tenant`
   * header.
   */
  readonly rateLimits?: readonly object[];
}

/** gRPC servers of one kind. */
interface ServerCluster {
  readonly ports: readonly number[];
  /** Whether Envoy checks their health. Default false. */
  readonly healthChecked?: boolean;
  /** Connections are closed after so many requests. Default: no limit. */
  readonly maxRequestsPerConnection?: number;
  /** Socket of TLS; plaintext when absent. */
  readonly transportSocket?: object;
}

interface ListenerOptions {
  readonly name: string;
  /** 0, a free one, when absent. */
  readonly port?: number;
  /** Without a decision: reject the request with 500 (true), or allow it (false). */
  readonly failureModeDeny: boolean;
}

export const domain = 'shop';

/**
 * Time for a limiter or the auth server to answer, 20 and 200 ms by default. Far more than
 * they need: a test machine is busy, and Envoy's count of timeouts shows whether they are slow, not
 * failed requests.
 */
const answerTimeout = '20s';

const perTenant = [
  { actions: [{ request_headers: { header_name: 'x-tenant', descriptor_key: 'tenant' } }] },
] as const;

/** The bootstrap of an Envoy that calls Tollgate for each request. */
export function envoyConfig(options: EnvoyConfigOptions): object {
  const { extAuthz } = options;
  return {
    // Envoy requires a node to read secrets from files.
    node: { id: 'e2e', cluster: 'e2e' },
    static_resources: {
      listeners: options.listeners.map((listener) => toListener(listener, options)),
      clusters: [
        cluster('upstream', [options.upstreamPort]),
        serverCluster('ratelimit', options.limiters),
        ...(extAuthz === undefined ? [] : [serverCluster('ext_authz', extAuthz)]),
      ],
    },
  };
}

function toListener(
  { name, port = 0, failureModeDeny }: ListenerOptions,
  { extAuthz, rateLimits = perTenant }: EnvoyConfigOptions,
): object {
  const route = { match: { prefix: '/' }, route: { cluster: 'upstream', rate_limits: rateLimits } };
  const routes = [...(extAuthz === undefined ? [] : [whoamiRoute('upstream')]), route];
  const filters = [
    ...(extAuthz === undefined ? [] : [extAuthzFilter()]),
    rateLimitFilter({ domain, failureModeDeny }),
  ];
  return httpListener({ name, port, routes, filters });
}

/** A listener for HTTP with routes for all hosts. */
export function httpListener({
  name,
  port = 0,
  routes,
  filters = [],
}: {
  readonly name: string;
  readonly port?: number;
  readonly routes: readonly object[];
  readonly filters?: readonly object[];
}): object {
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const connectionManager = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type':
        'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
      stat_prefix: name,
      route_config: { virtual_hosts: [{ name: 'app', domains: ['*'], routes }] },
      http_filters: [...filters, router],
    },
  };
  return {
    name,
    address: { socket_address: { address: '127.0.0.1', port_value: port } },
    filter_chains: [{ filters: [connectionManager] }],
  };
}

/** The ratelimit filter, which calls the cluster `ratelimit`. */
export function rateLimitFilter({
  domain,
  failureModeDeny,
  timeout = answerTimeout,
}: {
  readonly domain: string;
  readonly failureModeDeny: boolean;
  readonly timeout?: string;
}): object {
  return {
    name: 'envoy.filters.http.ratelimit',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit',
      domain,
      timeout,
      failure_mode_deny: failureModeDeny,
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
      },
    },
  };
}

/** A cluster of gRPC servers, named for the service of its health checks. */
export function serverCluster(name: string, servers: ServerCluster): object {
  const { ports, healthChecked = false, maxRequestsPerConnection, transportSocket } = servers;
  return {
    ...cluster(name, ports),
    ...http2(maxRequestsPerConnection),
    ...(transportSocket === undefined ? {} : { transport_socket: transportSocket }),
    ...(healthChecked ? { health_checks: [healthCheck(name)] } : {}),
  };
}

/** Often enough to see within the `SHUTDOWN_DELAY` of a test that a server is about to stop. */
function healthCheck(serviceName: string): object {
  return {
    timeout: answerTimeout,
    interval: '0.2s',
    no_traffic_interval: '0.2s',
    unhealthy_threshold: 1,
    healthy_threshold: 1,
    grpc_health_check: { service_name: serviceName },
  };
}

function http2(maxRequestsPerConnection?: number): object {
  return {
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicit_http_config: { http2_protocol_options: {} },
        ...(maxRequestsPerConnection === undefined
          ? {}
          : { common_http_protocol_options: { max_requests_per_connection: maxRequestsPerConnection } }),
      },
    },
  };
}

/** A cluster of servers on loopback. */
export function cluster(name: string, ports: readonly number[]): object {
  return {
    name,
    type: 'STATIC',
    connect_timeout: answerTimeout,
    load_assignment: {
      cluster_name: name,
      endpoints: [
        {
          lb_endpoints: ports.map((port) => ({
            endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
          })),
        },
      ],
    },
  };
}

/**
 * A transport socket of TLS to servers for `localhost`, with a certificate of Envoy's own. Envoy
 * reloads files that are configured as secrets with a watched folder, and only those.
 */
export function tlsTransportSocket(t: Test, files: RotatingCertificates): object {
  const secrets = makeTextFolder(t);
  const watched = { watched_directory: { path: files.folder } };
  const write = (name: string, secret: object): void =>
    secrets.write(
      `${name}.json`,
      JSON.stringify({
        resources: [
          {
            '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret',
            name,
            ...secret,
          },
        ],
      }),
    );
  write('own', {
    tls_certificate: {
      certificate_chain: { filename: files.certFile },
      private_key: { filename: files.keyFile },
      ...watched,
    },
  });
  write('authorities', {
    validation_context: {
      trusted_ca: { filename: files.caFile },
      match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'localhost' } }],
      ...watched,
    },
  });
  const secret = (name: string): object => ({
    name,
    sds_config: {
      path_config_source: { path: join(secrets.path, `${name}.json`) },
      resource_api_version: 'V3',
    },
  });
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      common_tls_context: {
        alpn_protocols: ['h2'],
        tls_certificate_sds_secret_configs: [secret('own')],
        validation_context_sds_secret_config: secret('authorities'),
      },
    },
  };
}
