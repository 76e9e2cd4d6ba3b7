import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import type { Steps } from '@tollgate/kit/time';
import {
  AggregatedDiscoveryService,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';

const rateLimitConfigTypeUrl = `type.googleapis.com/${RateLimitConfigSchema.typeName}`;

export const streamAggregatedResourcesPath = `/${AggregatedDiscoveryService.typeName}/${AggregatedDiscoveryService.method.streamAggregatedResources.name}`;

export interface DiscoveryNode {
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The complete set of resources of a response. */
export interface DiscoveredSet {
  readonly version: string;
  readonly nonce: string;
  /** Encoded RateLimitConfig messages. */
  readonly resources: readonly Uint8Array[];
}

/** A response, or the reason to reject it. */
type DecodedResponse =
  | { readonly ok: true; readonly set: DiscoveredSet }
  | { readonly ok: false; readonly version: string; readonly nonce: string; readonly problem: string };

/**
 * The first request of a stream, for all resources of the type. It has no version, although a set
 * may be active: a server that counts versions from 1 after each start could take another set for
 * it and send nothing.
 */
export function encodeSubscription(node: DiscoveryNode): Uint8Array {
  const metadata = { ...node.metadata };
  return encode({ node: { id: node.id, metadata, userAgentName: 'tollgate-ratelimit' } });
}

/** Accepts the response with that nonce: its version is active. */
export function encodeAck(version: string, nonce: string): Uint8Array {
  return encode({ versionInfo: version, responseNonce: nonce });
}

/** google.rpc.Code INVALID_ARGUMENT. */
const invalidArgument = 3;

/** Rejects the response with that nonce; `version` is the active one, or empty. */
export function encodeNack(version: string, nonce: string, message: string): Uint8Array {
  return encode({
    versionInfo: version,
    responseNonce: nonce,
    errorDetail: { code: invalidArgument, message },
  });
}

function encode(request: MessageInitShape<typeof DiscoveryRequestSchema>): Uint8Array {
  const message = create(DiscoveryRequestSchema, { ...request, typeUrl: rateLimitConfigTypeUrl });
  return toBinary(DiscoveryRequestSchema, message);
}

const { resources: resourcesField } = DiscoveryResponseSchema.field;

/**
 * Decodes a response in steps, because it may have tens of thousands of resources.
 *
 * @throws Error when the bytes are not a DiscoveryResponse, which leaves no nonce for a reply.
 */
export function* decodeResponse(bytes: Uint8Array): Steps<DecodedResponse> {
  const reader = new BinaryReader(bytes);
  const resources: Any[] = [];
  const rest: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    if (field === resourcesField.number && wireType === WireType.LengthDelimited) {
      resources.push(fromBinary(AnySchema, reader.bytes()));
      yield;
    } else {
      reader.skip(wireType, field);
      rest.push(bytes.subarray(start, reader.pos));
    }
  }
  return validate(fromBinary(DiscoveryResponseSchema, Buffer.concat(rest)), resources);
}

function validate(
  { versionInfo: version, nonce, typeUrl }: DiscoveryResponse,
  resources: readonly Any[],
): DecodedResponse {
  const reject = (problem: string): DecodedResponse => ({ ok: false, version, nonce, problem });
  if (!isRateLimitConfig(typeUrl)) return reject(`the response is of type '${typeUrl}', ${expected}`);
  const invalid = resources.findIndex((resource) => !isRateLimitConfig(resource.typeUrl));
  if (invalid !== -1)
    return reject(`resource ${invalid} is of type '${resources[invalid]?.typeUrl ?? ''}', ${expected}`);
  return { ok: true, set: { version, nonce, resources: resources.map(({ value }) => value) } };
}

const expected = `not ${rateLimitConfigTypeUrl}`;

/** Ignores the prefix, which only says where the type is described. */
function isRateLimitConfig(typeUrl: string): boolean {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1) === RateLimitConfigSchema.typeName;
}
