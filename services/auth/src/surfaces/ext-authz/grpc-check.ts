import type { UnaryHandler } from '@tollgate/grpc-server/call';
import type { AuthzDenied } from '../../domain/authz/authz-decision.ts';
import { errors } from '../../errors.ts';
import type { AuthorizeRequest } from '../../use-cases/authz/authorize-request.ts';
import { readCheckRequest } from './check-request.ts';
import { writeCheckResponse } from './check-response.ts';

/** Path of the call. @see envoy.service.auth.v3.Authorization.Check */
export const checkPath = '/envoy.service.auth.v3.Authorization/Check';

/**
 * Makes the handler of Check. It never fails: Envoy counts a failed call as an error, which `failure_mode_allow` lets pass,
 * while a refusal is a refusal.
 */
export function createGrpcCheck(authorize: AuthorizeRequest): UnaryHandler {
  return (bytes, call) => {
    const request = readCheckRequest(bytes);
    if (request === undefined) return writeCheckResponse(notHttp);
    const decision = authorize(request, call.timeLeftMs());
    return decision instanceof Promise ? decision.then(writeCheckResponse) : writeCheckResponse(decision);
  };
}

/** A network filter asks, or somebody who is no Envoy: there is no token that could be looked at. */
const notHttp: AuthzDenied = {
  allowed: false,
  httpStatus: 403,
  errorCode: 'not_http',
  message: errors.not_http.definition.message,
  headers: {},
};
