import { type AppError, defineErrors, grpcStatus } from '@tollgate/kit/errors';

/**
 * All public errors, by their stable code.
 *
 * Messages, the status UNKNOWN and the 400 of `/json` are those of envoyproxy/ratelimit. The last
 * are of the debug port and of the counter API.
 */
export const errors = defineErrors({
  empty_domain: {
    httpStatus: 400,
    grpcStatus: grpcStatus.unknown,
    message: 'rate limit domain must not be empty',
  },
  no_descriptors: {
    httpStatus: 400,
    grpcStatus: grpcStatus.unknown,
    message: 'rate limit descriptor list must not be empty',
  },
  no_configuration: {
    httpStatus: 400,
    grpcStatus: grpcStatus.unknown,
    message: 'no rate limit configuration loaded',
  },
  unknown_policy: {
    httpStatus: 400,
    grpcStatus: grpcStatus.failedPrecondition,
    message: 'the limiter has no rules of this policy',
  },
  too_many_descriptors: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'the request has too many descriptors',
  },
  invalid_override: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'the limit override of a descriptor must have a unit',
  },
  malformed_request: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'the request is not a RateLimitRequest',
  },
  backend_failure: {
    httpStatus: 400,
    grpcStatus: grpcStatus.unknown,
    message: 'the counter backend failed',
  },
  body_too_large: {
    httpStatus: 413,
    grpcStatus: grpcStatus.resourceExhausted,
    message: 'the request body is too large',
  },
  profile_in_progress: {
    httpStatus: 409,
    grpcStatus: grpcStatus.resourceExhausted,
    message: 'another profile is in progress, retry later',
  },
  local_callers_only: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message:
      'a heap snapshot contains secrets and is available to local callers only: use http://localhost, in a cluster with kubectl port-forward',
  },
  no_execution_trace: {
    httpStatus: 501,
    grpcStatus: grpcStatus.unimplemented,
    message:
      'Node has no execution trace: use /debug/pprof/profile for where CPU time goes, TRACING_ENABLED=true for where requests wait',
  },
  caller_not_authenticated: {
    httpStatus: 401,
    grpcStatus: grpcStatus.unauthenticated,
    message:
      'a token of ADMIN_TOKEN or ADMIN_TOKENS is required, or with ADMIN_KEYS_URL an API key or an access token of an administrator: Authorization: Bearer <token>',
  },
  right_missing: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message: 'the token lacks the right that the request needs',
  },
  keys_unavailable: {
    httpStatus: 503,
    grpcStatus: grpcStatus.unavailable,
    message: 'the auth server of ADMIN_KEYS_URL cannot check the API key or access token, retry later',
  },
  certificate_not_accepted: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message: 'the client certificate does not have the DNS name of ADMIN_TLS_CLIENT_SAN',
  },
  path_not_found: {
    httpStatus: 404,
    grpcStatus: grpcStatus.notFound,
    message: 'the counter API has no such path, or not with this method',
  },
  descriptor_not_limited: {
    httpStatus: 404,
    grpcStatus: grpcStatus.notFound,
    message: 'no rule limits this descriptor',
  },
  override_not_found: {
    httpStatus: 404,
    grpcStatus: grpcStatus.notFound,
    message: 'this descriptor has no override',
  },
  too_many_overrides: {
    httpStatus: 409,
    grpcStatus: grpcStatus.resourceExhausted,
    message: 'there are 10,000 overrides: remove some, or change the rules',
  },
  over_limit: {
    httpStatus: 429,
    grpcStatus: grpcStatus.resourceExhausted,
    message: 'the reservation exceeds a limit',
  },
  reservation_too_large: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'more hits than the limit ever allows at once: reserve fewer',
  },
  reservation_invalid: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'the id is not of a reservation of this service',
  },
  reservation_expired: {
    httpStatus: 410,
    grpcStatus: grpcStatus.failedPrecondition,
    message: 'the reservation has expired, and its hits stay counted',
  },
  reservation_committed: {
    httpStatus: 409,
    grpcStatus: grpcStatus.failedPrecondition,
    message: 'the reservation was committed before',
  },
  reservations_need_token: {
    httpStatus: 501,
    grpcStatus: grpcStatus.unimplemented,
    message: 'reservations need ADMIN_TOKEN, which signs their ids: set it on all replicas',
  },
  store_lacks_feature: {
    httpStatus: 501,
    grpcStatus: grpcStatus.unimplemented,
    message: 'the counter store cannot do this',
  },
});

/**
 * The error for a counter store that did not answer; `message` is the driver's and holds no
 * secrets.
 */
export function backendFailure(message: string, cause?: unknown): AppError {
  return errors.backend_failure({ message, cause });
}
