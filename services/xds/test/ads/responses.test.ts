import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import t from 'tap';
import { deltaProtocol, encodeDeltaDiscoveryResponse } from '../../src/ads/delta.ts';
import {
  encodeDiscoveryResponse,
  encodeNonce,
  noSubscription,
  ResponseCache,
  replaceSubscription,
  select,
} from '../../src/ads/exchange.ts';
import { rateLimitConfigType, type SnapshotResource } from '../../src/catalog/snapshot.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

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

/**
 * Compares the encoded messages, which is much faster than comparing objects of megabytes.
 */
function decodesTo<Schema extends DescMessage>(
  schema: Schema,
  bytes: Uint8Array,
  expected: MessageShape<Schema>,
): boolean {
  return Buffer.compare(toBinary(schema, fromBinary(schema, bytes)), toBinary(schema, expected)) === 0;
}

t.test('state-of-the-world response decodes to its content', async (t) => {
  for (const resources of [[], all]) {
    const body = encodeDiscoveryResponse(
      'v1',
      resources.map((one) => one.encoded),
    );
    const expected = create(DiscoveryResponseSchema, {
      versionInfo: 'v1',
      typeUrl: rateLimitConfigType,
      nonce: '12345',
      resources: resources.map(({ value }) => value),
    });
    t.ok(decodesTo(DiscoveryResponseSchema, Buffer.concat([encodeNonce('12345'), body]), expected));
  }
});

t.test('incremental response decodes to its content', async (t) => {
  for (const [resources, removed] of [[[], []] as const, [all, ['gone', 'gone too']] as const]) {
    const body = encodeDeltaDiscoveryResponse('v1', {
      changed: resources.length === 0 ? [] : encoded,
      removed,
    });
    const expected = create(DeltaDiscoveryResponseSchema, {
      systemVersionInfo: 'v1',
      typeUrl: rateLimitConfigType,
      nonce: '9',
      resources: resources.map(({ value, encoded: { name, version } }) => ({
        name,
        version,
        resource: value,
      })),
      removedResources: [...removed],
    });
    t.ok(decodesTo(DeltaDiscoveryResponseSchema, Buffer.concat([encodeNonce('9'), body]), expected));
  }
});

const selectAll = (snapshot: ReturnType<typeof testSnapshot>) => ({
  snapshot,
  resources: snapshot.resources,
});

t.test('response of a whole snapshot is encoded once', async (t) => {
  const cache = new ResponseCache();
  const snapshot = testSnapshot({ a: 1 });
  t.equal(cache.sotwBody(selectAll(snapshot)), cache.sotwBody(selectAll(snapshot)));
  t.equal(cache.versions(snapshot.resources), cache.versions(snapshot.resources));
  const other = testSnapshot({ a: 2 });
  const body = cache.sotwBody(selectAll(snapshot));
  t.not(cache.sotwBody(selectAll(other)), body);
  t.not(cache.sotwBody(selectAll(snapshot)), body, 'that of an older snapshot is kept no more');
});

t.test('difference of two snapshots and its response are computed once', async (t) => {
  const cache = new ResponseCache();
  const [before, after, later] = [testSnapshot({ a: 1 }), testSnapshot({ a: 2 }), testSnapshot({ a: 3 })];
  const diff = cache.diff(before.resources, after.resources);
  t.equal(cache.diff(before.resources, after.resources), diff);
  t.equal(
    deltaProtocol.body({ selection: selectAll(after), diff }, cache),
    deltaProtocol.body({ selection: selectAll(after), diff }, cache),
  );
  t.not(cache.diff(before.resources, later.resources), diff);
});

t.test('responses to subscriptions by name are not cached', async (t) => {
  const cache = new ResponseCache();
  const snapshot = testSnapshot({ a: 1, b: 1 });
  const selection = select(snapshot, replaceSubscription(noSubscription, ['a']));
  const body = cache.sotwBody(selection);
  t.not(cache.sotwBody(selection), body);
  t.strictSame(cache.sotwBody(selection), body);
});
