import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import t from 'tap';
import type { SnapshotResource } from '../../../src/domain/snapshot.ts';
import {
  deltaDiscoveryResponseBody,
  discoveryResponseBody,
  withNonce,
} from '../../../src/surfaces/grpc/discovery-response-bytes.ts';

/** A resource with a value of this many bytes. */
function resource(name: string, size: number) {
  const value = create(AnySchema, {
    typeUrl: 'type.googleapis.com/some.Type',
    value: new Uint8Array(size).fill(7),
  });
  const encoded: SnapshotResource = { name, version: `of ${name}`, any: toBinary(AnySchema, value) };
  return { value, encoded };
}

// Lengths of one, two, three and four bytes, on both sides of each step.
const all = [0, 1, 60, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152].map((size) =>
  resource(`ünïcode-${size}`, size),
);
const encoded = all.map((one) => one.encoded);

/** Compares what the library writes of both: megabytes of it take it no time, unlike a comparison of the objects. */
function decodesTo<Schema extends DescMessage>(
  schema: Schema,
  bytes: Uint8Array,
  expected: MessageShape<Schema>,
): boolean {
  return Buffer.compare(toBinary(schema, fromBinary(schema, bytes)), toBinary(schema, expected)) === 0;
}

t.test('the bytes of a state-of-the-world response decode to it', async (t) => {
  for (const resources of [[], all]) {
    const typeUrl = 'type.googleapis.com/some.Type';
    const body = discoveryResponseBody({
      versionInfo: 'v1',
      typeUrl,
      resources: resources.map((one) => one.encoded),
    });
    const expected = create(DiscoveryResponseSchema, {
      versionInfo: 'v1',
      typeUrl,
      nonce: '12345',
      resources: resources.map(({ value }) => value),
    });
    t.ok(decodesTo(DiscoveryResponseSchema, withNonce(body, '12345'), expected));
  }
});

t.test('the bytes of an incremental response decode to it', async (t) => {
  for (const [resources, removed] of [[[], []] as const, [all, ['gone', 'gone too']] as const]) {
    const body = deltaDiscoveryResponseBody({
      systemVersionInfo: 'v1',
      typeUrl: 'type.googleapis.com/some.Type',
      changed: resources.length === 0 ? [] : encoded,
      removed,
    });
    const expected = create(DeltaDiscoveryResponseSchema, {
      systemVersionInfo: 'v1',
      typeUrl: 'type.googleapis.com/some.Type',
      nonce: '9',
      resources: resources.map(({ value, encoded: { name, version } }) => ({
        name,
        version,
        resource: value,
      })),
      removedResources: [...removed],
    });
    t.ok(decodesTo(DeltaDiscoveryResponseSchema, withNonce(body, '9'), expected));
  }
});
