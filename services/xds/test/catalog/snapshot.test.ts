import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import type { JsonObject, RuleDocument } from '@tollgate/rules/rule-document';
import t from 'tap';
import { encodeRules, rateLimitConfigType, SnapshotBuilder } from '../../src/catalog/snapshot.ts';

const withMetadata = (json: string): RuleDocument => {
  const metadata: JsonObject = JSON.parse(json);
  return { source: 's', domain: 'd', descriptors: [{ key: 'k', descriptors: [{ key: 'l', metadata }] }] };
};

t.test('rules become an Any that limiters can read', async (t) => {
  const any = fromBinary(AnySchema, encodeRules(withMetadata('{"b":[{"y":1,"x":null}],"a":"text"}')));
  t.equal(any.typeUrl, rateLimitConfigType);
  t.match(fromBinary(RateLimitConfigSchema, any.value), {
    name: 'd',
    domain: 'd',
    descriptors: [{ key: 'k', descriptors: [{ key: 'l', metadata: { b: [{ y: 1, x: null }], a: 'text' } }] }],
  });
});

t.test('the order of the keys of metadata makes no other bytes', async (t) => {
  const [one, other] = [
    withMetadata('{"b":[{"y":1,"x":null}],"a":"text"}'),
    withMetadata('{"a":"text","b":[{"x":null,"y":1}]}'),
  ].map(encodeRules);
  t.strictSame(one, other);
});

t.test('a metadata key named __proto__ is a key like any other', async (t) => {
  const plain = encodeRules(withMetadata('{"a":1}'));
  const odd = encodeRules(withMetadata('{"__proto__":{"a":1}}'));
  t.not(Buffer.compare(plain, odd), 0);
  t.ok(Buffer.from(odd).includes('__proto__'));
});

t.test('a version is short, and another for other bytes', async (t) => {
  const versionOf = (document: RuleDocument) => {
    const builder = new SnapshotBuilder();
    builder.put('d', document);
    return builder.build().resources.get('d')?.version;
  };
  const one = versionOf(withMetadata('{"a":1}'));
  t.match(one, /^[0-9a-f]{32}$/);
  t.not(one, versionOf(withMetadata('{"a":2}')));
  t.equal(one, versionOf(withMetadata('{"a":1}')));
});

t.test('the type is that of the message', async (t) => {
  t.equal(rateLimitConfigType, `type.googleapis.com/${RateLimitConfigSchema.typeName}`);
});
