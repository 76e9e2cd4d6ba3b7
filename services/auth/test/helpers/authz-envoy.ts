import { type Echo, startEcho } from '@tollgate/testkit/echo';
import { startEnvoy } from '@tollgate/testkit/envoy';
import type t from 'tap';

/** Options of Envoy. */
export interface AuthzEnvoyOptions {
  readonly variant: 'grpc' | 'http';
  /** Port of the auth server. */
  readonly port: number;
  /** Port of an upstream that replaces the echo. */
  readonly upstreamPort?: number;
  /** Filters and clusters that replace the generated ones. */
  readonly written?: { readonly http_filters: readonly object[]; readonly clusters: readonly object[] };
  /** Timeout of a check. */
  readonly timeout?: string;
  /** Further options of the filter. */
  readonly filter?: Readonly<Record<string, unknown>>;
  /** Further options of the connection manager. */
  readonly manager?: Readonly<Record<string, unknown>>;
  /** Over HTTP: further headers for the auth server, and options of its response. */
  readonly allowedHeaders?: readonly object[];
  readonly authorizationResponse?: Readonly<Record<string, unknown>>;
  /** PEM texts with which Envoy serves https. Undefined: plaintext. */
  readonly certificate?: { readonly cert: string; readonly key: string };
  /** A host whose requests go to this port without a check. */
  readonly api?: { readonly host: string; readonly port: number };
  /** PEM files of the client. Undefined: plaintext. */
  readonly tls?: { readonly caFile: string; readonly certFile?: string; readonly keyFile?: string };
}

/** Envoy with an upstream that echoes requests. */
export interface AuthzEnvoy {
  readonly url: string;
  readonly upstream: Echo;
}

/** Header with a value of the dynamic metadata. */
const metadataHeaders = {
  plan: 'x-metadata-plan',
  limit: 'x-metadata-limit',
  httpPlan: 'x-metadata-http-plan',
};

/** Headers that an upstream could mistake for identity headers. */
const identityPattern = { safe_regex: { regex: '(?i)x[^a-z0-9](auth|user).*' } };

/** Generous, because test machines are busy. */
const patience = '20s';

/**
 * Starts an Envoy that changes nothing of a path and tells the upstream the plan and limit of its
 * dynamic metadata; stopped when the test ends.
 */
export async function startAuthzEnvoy(
  test: Pick<typeof t, 'teardown'>,
  options: AuthzEnvoyOptions,
): Promise<AuthzEnvoy> {
  const upstream = await startEcho();
  test.teardown(upstream.stop);
  const envoy = await startEnvoy({ config: bootstrap(options, options.upstreamPort ?? upstream.port) });
  test.teardown(envoy.stop);
  return { url: `http://127.0.0.1:${envoy.port}`, upstream };
}

const typeUrl = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;

function bootstrap(options: AuthzEnvoyOptions, upstreamPort: number): object {
  const manager = {
    '@type': typeUrl('filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'ingress',
    // All paths are checked as sent; Envoy does not normalize them.
    normalize_path: false,
    merge_slashes: false,
    path_with_escaped_slashes_action: 'KEEP_UNCHANGED',
    common_http_protocol_options: { headers_with_underscores_action: 'ALLOW' },
    route_config: {
      virtual_hosts: [
        { name: 'app', domains: ['*'], routes: [route] },
        ...(options.api ? [apiHost(options.api.host)] : []),
      ],
    },
    http_filters: [
      ...(options.written?.http_filters ?? [authzFilter(options)]),
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': typeUrl('filters.http.router.v3.Router') },
      },
    ],
    ...options.manager,
  };
  return {
    static_resources: {
      listeners: [
        {
          name: 'ingress',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [
            {
              filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }],
              ...(options.certificate && { transport_socket: frontSocket(options.certificate) }),
            },
          ],
        },
      ],
      clusters: [
        cluster('upstream', upstreamPort),
        ...(options.api ? [cluster('api', options.api.port)] : []),
        ...(options.written?.clusters ?? [{ ...cluster('ext_authz', options.port), ...wire(options) }]),
      ],
    },
  };
}

const metadata = (key: string): string => `%DYNAMIC_METADATA(envoy.filters.http.ext_authz:${key})%`;

const route = {
  match: { prefix: '/' },
  route: { cluster: 'upstream' },
  request_headers_to_add: [
    [metadataHeaders.plan, metadata('plan')],
    [metadataHeaders.limit, metadata('limit')],
    [metadataHeaders.httpPlan, metadata('x-auth-plan')],
  ].map(([key, value]) => ({ header: { key, value } })),
};

function apiHost(host: string): object {
  const filter = { '@type': typeUrl('filters.http.ext_authz.v3.ExtAuthzPerRoute'), disabled: true };
  return {
    ...{ name: 'api', domains: [host, `${host}:*`] },
    routes: [{ match: { prefix: '/' }, route: { cluster: 'api' } }],
    typed_per_filter_config: { 'envoy.filters.http.ext_authz': filter },
  };
}

function frontSocket({ cert, key }: NonNullable<AuthzEnvoyOptions['certificate']>): object {
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': typeUrl('transport_sockets.tls.v3.DownstreamTlsContext'),
      common_tls_context: {
        tls_certificates: [
          { certificate_chain: { inline_string: cert }, private_key: { inline_string: key } },
        ],
      },
    },
  };
}

function authzFilter(options: AuthzEnvoyOptions): object {
  const { variant, port, tls, filter, timeout = patience } = options;
  return {
    name: 'envoy.filters.http.ext_authz',
    typed_config: {
      '@type': typeUrl('filters.http.ext_authz.v3.ExtAuthz'),
      transport_api_version: 'V3',
      status_on_error: { code: 'ServiceUnavailable' },
      validate_mutations: true,
      ...(variant === 'grpc'
        ? { grpc_service: { envoy_grpc: { cluster_name: 'ext_authz' }, timeout }, encode_raw_headers: true }
        : {
            http_service: {
              server_uri: {
                uri: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
                cluster: 'ext_authz',
                timeout,
              },
              authorization_response: {
                allowed_upstream_headers: { patterns: [{ prefix: 'x-auth-' }] },
                dynamic_metadata_from_headers: { patterns: [{ prefix: 'x-auth-' }] },
                ...options.authorizationResponse,
              },
            },
            allowed_headers: {
              patterns: [{ exact: 'authorization' }, identityPattern, ...(options.allowedHeaders ?? [])],
            },
          }),
      ...filter,
    },
  };
}

function cluster(name: string, port: number): object {
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}

function wire({ variant, tls }: AuthzEnvoyOptions): object {
  const http2 = {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': typeUrl('upstreams.http.v3.HttpProtocolOptions'),
      explicit_http_config: { http2_protocol_options: {} },
    },
  };
  return {
    ...(variant === 'grpc' && { typed_extension_protocol_options: http2 }),
    ...(tls && { transport_socket: transportSocket(tls) }),
  };
}

function transportSocket({ caFile, certFile, keyFile }: NonNullable<AuthzEnvoyOptions['tls']>): object {
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': typeUrl('transport_sockets.tls.v3.UpstreamTlsContext'),
      sni: 'localhost',
      common_tls_context: {
        validation_context: { trusted_ca: { filename: caFile } },
        ...(certFile && {
          tls_certificates: [
            { certificate_chain: { filename: certFile }, private_key: { filename: keyFile } },
          ],
        }),
      },
    },
  };
}
