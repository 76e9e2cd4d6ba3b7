import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import type { Steps } from '@tollgate/kit/steps';
import {
  AggregatedDiscoveryService,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';

/** The type of the resources that are subscribed to. */
const rateLimitConfigTypeUrl = `type.googleapis.com/${RateLimitConfigSchema.typeName}`;

/** Path of the method that is called. */
export const streamAggregatedResourcesPath = `/${AggregatedDiscoveryService.typeName}/${AggregatedDiscoveryService.method.streamAggregatedResources.name}`;

/** Who subscribes. */
export interface DiscoveryNode {
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The complete set of resources, as the server sent it. */
export interface DiscoveredSet {
  readonly version: string;
  readonly nonce: string;
  /** Encoded RateLimitConfig messages. */
  readonly resources: readonly Uint8Array[];
}

/** A response that holds what was asked for, or what to tell the server instead. */
export type ReadResponse =
  | { readonly ok: true; readonly set: DiscoveredSet }
  | { readonly ok: false; readonly version: string; readonly nonce: string; readonly problem: string };

/**
 * The first request of a stream: all resources of the type. It tells no version, although one may be in force: a server
 * that counts versions from 1 after each start could take another set for the one we have, and keep silent.
 */
export function subscription(node: DiscoveryNode): Uint8Array {
  const metadata = { ...node.metadata };
  return encode({ node: { id: node.id, metadata, userAgentName: 'tollgate-ratelimit' } });
}

/** Accepts the response with that nonce: its version is in force. */
export function acknowledgement(version: string, nonce: string): Uint8Array {
  return encode({ versionInfo: version, responseNonce: nonce });
}

/** google.rpc.Code INVALID_ARGUMENT. */
const invalidArgument = 3;

/** Rejects the response with that nonce; `version` is the one that stays in force, empty when there is none. */
export function rejection(version: string, nonce: string, message: string): Uint8Array {
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
 * Reads a response, one resource after the other: there may be tens of thousands.
 *
 * @throws Error when the bytes are no DiscoveryResponse, so that there is no nonce to answer to.
 */
export function* readResponse(bytes: Uint8Array): Steps<ReadResponse> {
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
  return judge(fromBinary(DiscoveryResponseSchema, Buffer.concat(rest)), resources);
}

function judge(
  { versionInfo: version, nonce, typeUrl }: DiscoveryResponse,
  resources: readonly Any[],
): ReadResponse {
  const refuse = (problem: string): ReadResponse => ({ ok: false, version, nonce, problem });
  if (!isRateLimitConfig(typeUrl)) return refuse(`the response is of type '${typeUrl}', ${expected}`);
  const other = resources.findIndex((resource) => !isRateLimitConfig(resource.typeUrl));
  if (other !== -1)
    return refuse(`resource ${other} is of type '${resources[other]?.typeUrl ?? ''}', ${expected}`);
  return { ok: true, set: { version, nonce, resources: resources.map(({ value }) => value) } };
}

const expected = `not ${rateLimitConfigTypeUrl}`;

/** Whatever its prefix is: that says where the type is described, not what it is. */
function isRateLimitConfig(typeUrl: string): boolean {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1) === RateLimitConfigSchema.typeName;
}
