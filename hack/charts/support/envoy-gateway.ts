/** Envoy Gateway answers no other. */
export const nodeId = 'envoy-ratelimit';

/** Ports of the rate limit service and of what it connects to. */
export interface Ports {
  readonly ads: number;
  readonly redis: number;
  readonly metrics: number;
  readonly http: number;
  readonly grpc: number;
  readonly debug: number;
}

/** The variables of the rate limit Deployment of Envoy Gateway 1.9, all of them. */
export function deploymentVariables(ports: Ports): Readonly<Record<string, string>> {
  return {
    RUNTIME_ROOT: '/data',
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_IGNOREDOTFILES: 'true',
    RUNTIME_WATCH_ROOT: 'false',
    LOG_LEVEL: 'info',
    USE_STATSD: 'false',
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `envoy-gateway:${ports.ads}`,
    CONFIG_GRPC_XDS_NODE_ID: nodeId,
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: '/certs/tls.crt',
    GRPC_SERVER_TLS_KEY: '/certs/tls.key',
    GRPC_SERVER_TLS_CA_CERT: '/certs/ca.crt',
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/certs/tls.crt',
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/certs/tls.key',
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/certs/ca.crt',
    FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `localhost:${ports.redis}`,
    USE_PROMETHEUS: 'true',
    PROMETHEUS_ADDR: `:${ports.metrics}`,
    PROMETHEUS_MAPPER_YAML: '/etc/statsd-exporter/conf.yaml',
    PORT: String(ports.http),
    GRPC_PORT: String(ports.grpc),
    DEBUG_PORT: String(ports.debug),
  };
}
