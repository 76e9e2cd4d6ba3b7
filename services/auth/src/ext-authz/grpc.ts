import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { SpanKind } from '@opentelemetry/api';
import type { UnaryHandler } from '@tollgate/grpc-server/call';
import { type GrpcStatus, grpcStatus } from '@tollgate/kit/errors';
import { type Tracing, traceCarrier } from '@tollgate/kit/telemetry';
import { attributeOutputs, type CallerIdentity } from '@tollgate/policies/decide/caller';
import type { LimitOverride } from '@tollgate/policies/decide/limit-override';
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  type HeaderValue,
  type HeaderValueOptionSchema,
} from '@tollgate/proto/envoy/config/core/v3/base';
import type { AttributeContext } from '@tollgate/proto/envoy/service/auth/v3/attribute_context';
import { CheckRequestSchema, CheckResponseSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import { errors } from '../errors.ts';
import {
  addHeader,
  type Metadata,
  noParts,
  noSource,
  readCheckRequest,
  type WantedHeaders,
  type WantedParts,
  writeAllowed,
} from './codec.ts';
import type { Authorizer } from './decision.ts';
import { denialBody, denialHeaders } from './denials.ts';
import { CallerHeaders } from './identity-headers.ts';
import type { ReadProof } from './proof.ts';
import type { AuthzRequest } from './request.ts';
import type { ResourceAnswer, ResourceMetadata } from './resource-metadata.ts';
import type { AuthzAllowed, AuthzDecision, AuthzDenied } from './result.ts';
import { decodeRouteMetadata } from './route-metadata.ts';

/** @see envoy.service.auth.v3.Authorization.Check */
export const checkPath = '/envoy.service.auth.v3.Authorization/Check';

/** A check is read again for it: few tokens are bound to a key. */
const proofHeader: WantedParts = { headers: new Set(['dpop']), route: undefined };

interface GrpcChecks {
  readonly authorizer: Pick<Authorizer, 'authorize'>;
  /** Answers some requests itself. Default none. */
  readonly resources?: Pick<ResourceMetadata, 'answer'>;
  /** Default none. */
  readonly wantedParts?: () => WantedParts;
}

/** Handles Check calls: with tracing, each in a span of Envoy's trace. */
export function createGrpcCheckHandler(checks: GrpcChecks, tracing: Tracing): UnaryHandler {
  const { wantedParts = () => noParts } = checks;
  const handle: UnaryHandler = (bytes, call) => {
    const wanted = wantedParts();
    const request = readCheckRequest(bytes, wanted) ?? decodeCheckRequest(bytes, wanted);
    const readProof = () => decodeCheckRequest(bytes, proofHeader)?.headers.dpop;
    return handleGrpcCheck(checks, request, { timeoutMs: call.timeLeftMs(), readProof });
  };
  if (!tracing.enabled) return handle;
  return (bytes, call) => {
    const parent = tracing.extract(traceCarrier((name) => call.header(name)));
    return tracing.inSpan(checkPath.slice(1), { kind: SpanKind.SERVER, parent }, () => handle(bytes, call));
  };
}

/**
 * Denials are successful calls: Envoy treats a failed call as an error, which `failure_mode_allow`
 * lets pass.
 */
function handleGrpcCheck(
  { authorizer, resources }: GrpcChecks,
  request: AuthzRequest | undefined,
  { timeoutMs, readProof }: { readonly timeoutMs: number | undefined; readonly readProof: ReadProof },
): Uint8Array | Promise<Uint8Array> {
  if (request === undefined) return writeCheckResponse(notHttp);
  const answer = resources?.answer(request);
  if (answer !== undefined) return encodeAnswer(answer);
  const decision = authorizer.authorize(request, timeoutMs, readProof);
  return decision instanceof Promise ? decision.then(writeCheckResponse) : writeCheckResponse(decision);
}

/** The check is not for an HTTP request, or the client is not Envoy. */
const notHttp: AuthzDenied = {
  allowed: false,
  httpStatus: 403,
  errorCode: 'not_http',
  message: errors.not_http.definition.message,
  headers: {},
};

/**
 * Reads a check by the definition of its message. Undefined if it is malformed, or not about an
 * HTTP request.
 */
export function decodeCheckRequest(
  bytes: Uint8Array,
  { headers: wanted, route: routes }: WantedParts = noParts,
): AuthzRequest | undefined {
  const attributes = decodeAttributes(bytes);
  const http = attributes?.request?.http;
  if (attributes === undefined || http === undefined) return undefined;
  const route = routes && decodeRouteMetadata(attributes.routeMetadataContext);
  const { method, path, host, headerMap, headers } = http;
  return {
    method,
    path,
    host,
    sourceAddress: attributes.source?.address?.address.value?.address || noSource,
    ...(headerMap === undefined
      ? fromJoinedHeaders(headers, wanted)
      : fromRawHeaders(headerMap.headers, wanted)),
    ...(route && { route }),
  };
}

function decodeAttributes(bytes: Uint8Array): AttributeContext | undefined {
  try {
    // Unknown fields would be kept as bytes, including the body of the request.
    return fromBinary(CheckRequestSchema, bytes, { readUnknownFields: false }).attributes;
  } catch {
    return undefined;
  }
}

type Headers = Pick<AuthzRequest, 'authorization' | 'forwardedFor' | 'headerNames' | 'headers'>;

function fromJoinedHeaders(
  headers: Readonly<Record<string, string | undefined>>,
  wanted: WantedHeaders,
): Headers {
  const { authorization, 'x-forwarded-for': forwardedFor } = headers;
  return {
    authorization: authorization === undefined ? [] : [authorization],
    forwardedFor: forwardedFor === undefined ? [] : [forwardedFor],
    headerNames: Object.keys(headers),
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => (wanted.has(name) ? [[name, value ?? '']] : [])),
    ),
  };
}

function fromRawHeaders(headers: readonly HeaderValue[], wanted: WantedHeaders): Headers {
  const named = headers.map((header) => ({ header, name: header.key.toLowerCase() }));
  const valuesOf = (wanted: string) =>
    named.flatMap(({ header, name }) => (name === wanted ? [toText(header)] : []));
  const values: Record<string, string> = {};
  for (const { header, name } of named) if (wanted.has(name)) addHeader(values, name, toText(header));
  return {
    authorization: valuesOf('authorization'),
    forwardedFor: valuesOf('x-forwarded-for'),
    headerNames: [...new Set(named.map(({ name }) => name))],
    headers: values,
  };
}

/** Latin-1, as in HTTP/1, so that no bytes outside ASCII turn into other text. */
function toText({ value, rawValue }: HeaderValue): string {
  return rawValue.length === 0 ? value : Buffer.from(rawValue).toString('latin1');
}

type Response = MessageInitShape<typeof CheckResponseSchema>;

function writeCheckResponse(decision: AuthzDecision): Uint8Array {
  if (!decision.allowed || decision.rateLimit !== undefined) return writeResponse(decision);
  const { headers } = decision;
  return headers instanceof CallerHeaders
    ? headers.response(() => writeResponse(decision))
    : writeResponse(decision);
}

function writeResponse(decision: AuthzDecision): Uint8Array {
  const usual = decision.allowed
    ? writeAllowed(decision.headers, decisionMetadata(decision), decision.responseHeaders)
    : undefined;
  return usual ?? encodeCheckResponse(decision);
}

/** Writes a response by the definition of its message. */
export function encodeCheckResponse(decision: AuthzDecision): Uint8Array {
  return toBinary(
    CheckResponseSchema,
    create(CheckResponseSchema, decision.allowed ? okResponse(decision) : deniedResponse(decision)),
  );
}

function okResponse(decision: AuthzAllowed): Response {
  const { headers, responseHeaders = {} } = decision;
  return {
    status: { code: grpcStatus.ok },
    httpResponse: {
      case: 'okResponse',
      value: {
        headers: overwrite(headers.set),
        headersToRemove: [...headers.remove],
        responseHeadersToAdd: overwrite(responseHeaders),
      },
    },
    dynamicMetadata: decisionMetadata(decision),
  };
}

const grpcStatuses: Readonly<Record<AuthzDenied['httpStatus'], GrpcStatus>> = {
  302: grpcStatus.unauthenticated,
  303: grpcStatus.unauthenticated,
  400: grpcStatus.invalidArgument,
  401: grpcStatus.unauthenticated,
  403: grpcStatus.permissionDenied,
  405: grpcStatus.unimplemented,
  429: grpcStatus.resourceExhausted,
  503: grpcStatus.unavailable,
};

function deniedResponse(denied: AuthzDenied): Response {
  return {
    status: { code: grpcStatuses[denied.httpStatus], message: denied.errorCode },
    httpResponse: {
      case: 'deniedResponse',
      value: {
        status: { code: denied.httpStatus },
        headers: overwrite(denialHeaders(denied)),
        body: denialBody(denied, denied.httpStatus),
      },
    },
    // For access logs: no filter follows.
    ...(denied.rateLimit !== undefined && { dynamicMetadata: decisionMetadata(denied) }),
  };
}

/** Envoy sends the response itself only if the status of the call is not OK. */
function encodeAnswer({ httpStatus, headers, body }: ResourceAnswer): Uint8Array {
  const value = { status: { code: httpStatus }, headers: overwrite(headers), body };
  const status = { code: grpcStatus.permissionDenied };
  return toBinary(
    CheckResponseSchema,
    create(CheckResponseSchema, { status, httpResponse: { case: 'deniedResponse', value } }),
  );
}

function overwrite(
  headers: Readonly<Record<string, string>>,
): MessageInitShape<typeof HeaderValueOptionSchema>[] {
  return Object.entries(headers).map(([key, value]) => ({
    header: { key, value },
    appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
  }));
}

/** The metadata of the caller, and the result of the rate limit. */
export function decisionMetadata({ identity, rateLimit }: AuthzDecision): Metadata {
  const metadata = identityMetadata(identity);
  return rateLimit === undefined ? metadata : { ...metadata, rate_limit: rateLimit };
}

/**
 * Dynamic metadata for rate limits, in Envoy's namespace `envoy.filters.http.ext_authz`. Empty
 * without an identity, so that the `default_value` of a descriptor applies.
 */
export function identityMetadata(identity: CallerIdentity | undefined): Metadata {
  if (identity === undefined) return {};
  const metadata: Record<string, Metadata[string]> = {};
  for (const { name, read } of attributeOutputs) {
    const value = read(identity);
    if (value !== undefined && value !== '') metadata[name] = value;
  }
  const { claims, orgLimit } = identity;
  const limit = identity.key?.limit ?? identity.limit ?? orgLimit;
  for (const name of Object.keys(claims)) metadata[name] = claims[name] ?? '';
  if (limit) metadata.limit = toLimitMetadata(limit);
  if (orgLimit) metadata.org_limit = toLimitMetadata(orgLimit);
  return metadata;
}

function toLimitMetadata({ requestsPerUnit, unit }: LimitOverride): Metadata {
  return { requests_per_unit: requestsPerUnit, unit };
}
