/** The auth server, where Envoy asks it whether a request may pass. */
export interface ExtAuthz {
  /** Of its gRPC server. */
  readonly port: number;
  /** Of TLS; plaintext when absent. */
  readonly transportSocket?: object;
}

/** The namespace of dynamic metadata in which the filter keeps who makes the request. */
const metadataNamespace = 'envoy.filters.http.ext_authz';

/** The filter that asks the auth server. It fails closed: with 503 where nobody answers. */
export function extAuthzFilter(timeout: string): object {
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
 * Descriptors of who makes a request: each user; each user by plan, with the limit of their own if they have one; each
 * role.
 */
export const identityRateLimits: readonly object[] = [
  { actions: [metadata('user_id')] },
  {
    actions: [metadata('plan', 'anonymous'), metadata('user_id')],
    limit: { dynamic_metadata: { metadata_key: metadataKey('limit') } },
  },
  { actions: [metadata('role')] },
];

function metadata(key: string, defaultValue?: string): object {
  return {
    metadata: {
      descriptor_key: key,
      source: 'DYNAMIC',
      metadata_key: metadataKey(key),
      ...(defaultValue === undefined ? {} : { default_value: defaultValue }),
    },
  };
}

function metadataKey(key: string): object {
  return { key: metadataNamespace, path: [{ key }] };
}
