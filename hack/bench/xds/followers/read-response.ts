import { fromBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { DiscoveryResponseSchema } from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';

/** What a follower needs of a DiscoveryResponse to acknowledge it. */
export interface ResponseHead {
  readonly version: string;
  readonly nonce: string;
}

const { versionInfo, nonce } = DiscoveryResponseSchema.field;

/** Reads the head of a response and passes over the resources: 500 followers share a process. */
export function readResponseHead(bytes: Uint8Array): ResponseHead {
  const reader = new BinaryReader(bytes);
  const head = { version: '', nonce: '' };
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === versionInfo.number && wireType === WireType.LengthDelimited) head.version = reader.string();
    else if (field === nonce.number && wireType === WireType.LengthDelimited) head.nonce = reader.string();
    else reader.skip(wireType, field);
  }
  return head;
}

/** The limits of the key `user` in a response, by domain. */
export function userLimitsIn(response: Uint8Array): Record<string, number> {
  const configs = fromBinary(DiscoveryResponseSchema, response).resources.map(({ value }) =>
    fromBinary(RateLimitConfigSchema, value),
  );
  return Object.fromEntries(
    configs.map(({ domain, descriptors }) => [
      domain,
      descriptors.find(({ key }) => key === 'user')?.rateLimit?.requestsPerUnit ?? 0,
    ]),
  );
}
