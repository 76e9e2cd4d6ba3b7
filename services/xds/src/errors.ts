import { defineErrors, grpcStatus } from '@tollgate/kit/errors';

/** All errors of the admin API, by their stable code. */
export const errors = defineErrors({
  invalid_request: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'the request is not one of the admin API',
  },
  invalid_cursor: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'the cursor is not one of a former response: send `next` of the last page, or none',
  },
  caller_not_authenticated: {
    httpStatus: 401,
    grpcStatus: grpcStatus.unauthenticated,
    message:
      'a token of XDS_ADMIN_TOKEN is required, or with XDS_ADMIN_KEYS_URL an API key or an access token of an administrator: Authorization: Bearer <token>',
  },
  right_missing: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message: 'the API key or access token lacks the admin scope of the request',
  },
  keys_unavailable: {
    httpStatus: 503,
    grpcStatus: grpcStatus.unavailable,
    message: 'the auth server of XDS_ADMIN_KEYS_URL cannot check the API key or access token, retry later',
  },
  local_callers_only: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message:
      'without credentials in the settings of the server, the admin API is for clients on loopback: use kubectl port-forward, or set XDS_ADMIN_TOKEN or XDS_ADMIN_KEYS_URL',
  },
  object_not_found: {
    httpStatus: 404,
    grpcStatus: grpcStatus.notFound,
    message: 'the source has no such object',
  },
  version_not_found: {
    httpStatus: 404,
    grpcStatus: grpcStatus.notFound,
    message: 'the server does not have this version of the object, or no longer',
  },
  path_not_found: {
    httpStatus: 404,
    grpcStatus: grpcStatus.notFound,
    message: 'the admin API has no such path',
  },
  body_too_large: {
    httpStatus: 413,
    grpcStatus: grpcStatus.resourceExhausted,
    message: 'the request body is too large',
  },
  internal_error: {
    httpStatus: 500,
    grpcStatus: grpcStatus.internal,
    message: 'internal error',
  },
});
