/** An Envoy that passes gRPC on to a server, over connections of its own. */
export function proxyBootstrap(port: number): object {
  const extensions = 'type.googleapis.com/envoy.extensions';
  const http2 = {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': `${extensions}.upstreams.http.v3.HttpProtocolOptions`,
      explicit_http_config: { http2_protocol_options: {} },
    },
  };
  const address = (portValue: number) => ({
    socket_address: { address: '127.0.0.1', port_value: portValue },
  });
  const route = { match: { prefix: '/' }, route: { cluster: 'server', timeout: '60s' } };
  const manager = {
    '@type': `${extensions}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'ingress',
    codec_type: 'HTTP2',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': `${extensions}.filters.http.router.v3.Router` },
      },
    ],
  };
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager };
  return {
    static_resources: {
      listeners: [{ name: 'ingress', address: address(0), filter_chains: [{ filters: [filter] }] }],
      clusters: [
        {
          name: 'server',
          type: 'STATIC',
          connect_timeout: '10s',
          typed_extension_protocol_options: http2,
          load_assignment: {
            cluster_name: 'server',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }],
          },
        },
      ],
    },
  };
}
