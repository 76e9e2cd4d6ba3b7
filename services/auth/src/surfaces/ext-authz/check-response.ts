import { create, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type GrpcStatus, grpcStatus } from '@tollgate/kit/errors';
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  type HeaderValueOptionSchema,
} from '@tollgate/proto/envoy/config/core/v3/base';
import { CheckResponseSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import type { AuthzAllowed, AuthzDecision, AuthzDenied } from '../../domain/authz/authz-decision.ts';
import { identityMetadata } from '../../domain/authz/identity-metadata.ts';
import { denialBody, denialHeaders } from './denial.ts';

/** Writes a decision as Envoy reads it. */
export function writeCheckResponse(decision: AuthzDecision): Uint8Array {
  return toBinary(
    CheckResponseSchema,
    create(CheckResponseSchema, decision.allowed ? allow(decision) : deny(decision)),
  );
}

type Response = MessageInitShape<typeof CheckResponseSchema>;

function allow({ identity, headers }: AuthzAllowed): Response {
  return {
    status: { code: grpcStatus.ok },
    httpResponse: {
      case: 'okResponse',
      value: { headers: overwrite(headers.set), headersToRemove: [...headers.remove] },
    },
    // Made of texts, numbers and booleans; the domain's type of JSON only says less than the library's.
    dynamicMetadata: identityMetadata(identity) as JsonObject,
  };
}

const statusOf: Readonly<Record<AuthzDenied['httpStatus'], GrpcStatus>> = {
  400: grpcStatus.invalidArgument,
  401: grpcStatus.unauthenticated,
  403: grpcStatus.permissionDenied,
  503: grpcStatus.unavailable,
};

function deny(denied: AuthzDenied): Response {
  return {
    status: { code: statusOf[denied.httpStatus], message: denied.errorCode },
    httpResponse: {
      case: 'deniedResponse',
      value: {
        status: { code: denied.httpStatus },
        headers: overwrite(denialHeaders(denied)),
        body: denialBody(denied, denied.httpStatus),
      },
    },
  };
}

function overwrite(
  headers: Readonly<Record<string, string>>,
): MessageInitShape<typeof HeaderValueOptionSchema>[] {
  return Object.entries(headers).map(([key, value]) => ({
    header: { key, value },
    appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
  }));
}
