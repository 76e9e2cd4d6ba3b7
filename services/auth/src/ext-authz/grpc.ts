import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import { type GrpcStatus, grpcStatus } from '@tollgate/kit/errors';
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  type HeaderValue,
  type HeaderValueOptionSchema,
} from '@tollgate/proto/envoy/config/core/v3/base';
import type { AttributeContext_HttpRequest } from '@tollgate/proto/envoy/service/auth/v3/attribute_context';
import { CheckRequestSchema, CheckResponseSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import { errors } from '../errors.ts';
import {
  type AuthorizeRequest,
  type AuthzAllowed,
  type AuthzDecision,
  type AuthzDenied,
  type AuthzRequest,
  denialBody,
  denialHeaders,
} from './decision.ts';
import { identityMetadata } from './headers.ts';

/** Reads the request that Envoy asks about. Undefined when the bytes are no such message, or it is not about HTTP. */
function readCheckRequest(bytes: Uint8Array): AuthzRequest | undefined {
  const http = readHttp(bytes);
  if (http === undefined) return undefined;
  const { method, path, headerMap, headers } = http;
  const metadata = { method: method.toUpperCase(), path };
  return headerMap === undefined
    ? { ...metadata, ...ofJoined(headers) }
    : { ...metadata, ...ofRaw(headerMap.headers) };
}

type Headers = Pick<AuthzRequest, 'authorization' | 'headerNames'>;

function readHttp(bytes: Uint8Array): AttributeContext_HttpRequest | undefined {
  try {
    // What we have no use for would be kept as bytes otherwise, the body of the request among them.
    const check = fromBinary(CheckRequestSchema, bytes, { readUnknownFields: false });
    return check.attributes?.request?.http;
  } catch {
    return undefined;
  }
}

function ofJoined(headers: Readonly<Record<string, string | undefined>>): Headers {
  const { authorization } = headers;
  return {
    authorization: authorization === undefined ? [] : [authorization],
    headerNames: Object.keys(headers),
  };
}

function ofRaw(headers: readonly HeaderValue[]): Headers {
  const named = headers.map((header) => ({ header, name: header.key.toLowerCase() }));
  return {
    authorization: named.flatMap(({ header, name }) => (name === 'authorization' ? [textOf(header)] : [])),
    headerNames: [...new Set(named.map(({ name }) => name))],
  };
}

/** One character a byte, as HTTP/1 does it: nothing that is no ASCII becomes another text. */
function textOf({ value, rawValue }: HeaderValue): string {
  return rawValue.length === 0 ? value : Buffer.from(rawValue).toString('latin1');
}

/** Writes a decision as Envoy reads it. */
function writeCheckResponse(decision: AuthzDecision): Uint8Array {
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
