import { rename, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { UpFile } from './file.ts';
import { authPath } from './policy.ts';

const loopback = '127.0.0.1';
const types = 'type.googleapis.com/envoy';

/** Names of files in the folder of the configuration. */
const files = { bootstrap: 'envoy.json', listeners: 'listeners.json', clusters: 'clusters.json' };

/** The file that Envoy starts with. */
export function bootstrapFile(folder: string): string {
  return join(folder, files.bootstrap);
}

/**
 * Writes the configuration of Envoy. Envoy loads listeners and clusters again once their files are
 * replaced, so that a changed upstream needs no restart.
 */
export async function writeEnvoyConfig(folder: string, file: UpFile): Promise<void> {
  const { ports } = file;
  await replaceFile(folder, files.clusters, { resources: clusters(file) });
  await replaceFile(folder, files.listeners, { resources: [listener(file)] });
  await replaceFile(folder, files.bootstrap, {
    node: { id: 'tollgate-up', cluster: 'tollgate-up' },
    admin: { address: address(loopback, ports.envoyAdmin) },
    dynamic_resources: {
      cds_config: fileSource(join(folder, files.clusters)),
      lds_config: fileSource(join(folder, files.listeners)),
    },
  });
}

/** Renamed into place: Envoy never reads a part of a file. */
async function replaceFile(folder: string, name: string, value: object): Promise<void> {
  const next = join(folder, `.${name}`);
  await writeFile(next, JSON.stringify(value));
  await rename(next, join(folder, name));
}

function fileSource(path: string): object {
  return { path_config_source: { path }, resource_api_version: 'V3' };
}

function address(host: string, port: number): object {
  return { socket_address: { address: host, port_value: port } };
}

function listener({ ports }: UpFile): object {
  return {
    '@type': `${types}.config.listener.v3.Listener`,
    name: 'ingress',
    address: address(loopback, ports.envoy),
    filter_chains: [
      {
        filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: connectionManager }],
      },
    ],
  };
}

const httpFilters = `${types}.extensions.filters.http`;

const connectionManager = {
  '@type': `${types}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`,
  stat_prefix: 'ingress',
  // Limits and the auth server use the address of the connection.
  use_remote_address: true,
  // Paths are normalized for routes, the auth server and the application.
  normalize_path: true,
  merge_slashes: true,
  path_with_escaped_slashes_action: 'UNESCAPE_AND_REDIRECT',
  common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
  upgrade_configs: [{ upgrade_type: 'websocket' }],
  route_config: {
    name: 'local',
    virtual_hosts: [
      {
        name: 'app',
        domains: ['*'],
        routes: [
          // Sign-up and sign-in have no token yet. The auth server limits them.
          {
            match: { prefix: `${authPath}/` },
            route: { cluster: 'auth', prefix_rewrite: '/' },
            typed_per_filter_config: {
              'envoy.filters.http.ext_authz': {
                '@type': `${httpFilters}.ext_authz.v3.ExtAuthzPerRoute`,
                disabled: true,
              },
            },
          },
          // Responses may be streams without an end.
          { match: { prefix: '/' }, route: { cluster: 'upstream', timeout: '0s' } },
        ],
      },
    ],
  },
  http_filters: [
    {
      name: 'envoy.filters.http.ext_authz',
      typed_config: {
        '@type': `${httpFilters}.ext_authz.v3.ExtAuthz`,
        transport_api_version: 'V3',
        grpc_service: {
          envoy_grpc: { cluster_name: 'ext_authz' },
          // The default of 200 ms can be too short while everything starts on one machine.
          timeout: '10s',
        },
        // Duplicate Authorization headers stay separate and are rejected.
        encode_raw_headers: true,
        // Fail closed.
        failure_mode_allow: false,
        status_on_error: { code: 'ServiceUnavailable' },
      },
    },
    {
      name: 'envoy.filters.http.router',
      typed_config: { '@type': `${httpFilters}.router.v3.Router` },
    },
  ],
};

function clusters({ upstream: { host, port }, ports }: UpFile): object[] {
  return [
    cluster('upstream', { host, port }),
    cluster('auth', { host: loopback, port: ports.authHttp }),
    {
      ...cluster('ext_authz', { host: loopback, port: ports.authGrpc }),
      typed_extension_protocol_options: {
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
          '@type': `${types}.extensions.upstreams.http.v3.HttpProtocolOptions`,
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
    },
  ];
}

function cluster(name: string, { host, port }: { readonly host: string; readonly port: number }): object {
  return {
    '@type': `${types}.config.cluster.v3.Cluster`,
    name,
    ...(isIP(host) === 0 ? { type: 'STRICT_DNS', dns_lookup_family: 'ALL' } : { type: 'STATIC' }),
    connect_timeout: '1s',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: address(host, port) } }] }],
    },
  };
}
