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
 * Descriptors of who makes a request: each user; each user by plan, with the limit of their own if they have one, and
 * all without a token together; each role.
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

/** Where nothing is counted, and the application is told the limit as well that Envoy has for the user. */
export const whoamiPath = '/whoami';

/** The route of that path. */
export function whoamiRoute(cluster: string): object {
  const value = `%DYNAMIC_METADATA(${metadataNamespace}:limit)%`;
  return {
    match: { path: whoamiPath },
    route: { cluster },
    request_headers_to_add: [{ header: { key: 'x-limit', value } }],
  };
}

function metadata(key: string, whenAbsent: object = {}): object {
  return {
    metadata: { descriptor_key: key, source: 'DYNAMIC', metadata_key: metadataKey(key), ...whenAbsent },
  };
}

function metadataKey(key: string): object {
  return { key: metadataNamespace, path: [{ key }] };
}
