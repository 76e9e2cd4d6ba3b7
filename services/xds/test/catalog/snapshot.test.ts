import { clone, create, createFileRegistry, fromBinary, toJson } from '@bufbuild/protobuf';
import { AnySchema, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import type { JsonObject } from '@tollgate/kit/json';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { resourceSpelling } from '@tollgate/rules/spelling';
import t from 'tap';
import { encodeRules, rateLimitConfigType, SnapshotBuilder } from '../../src/catalog/snapshot.ts';

const withMetadata = (json: string): RuleDocument => {
  const metadata: JsonObject = JSON.parse(json);
  return {
    source: 's',
    spelling: resourceSpelling,
    domain: 'd',
    descriptors: [{ key: 'k', descriptors: [{ key: 'l', metadata }] }],
  };
};

t.test('rules are encoded as an Any that limiters decode', async (t) => {
  const any = fromBinary(AnySchema, encodeRules(withMetadata('{"b":[{"y":1,"x":null}],"a":"text"}')));
  t.equal(any.typeUrl, rateLimitConfigType);
  t.match(fromBinary(RateLimitConfigSchema, any.value), {
    name: 'd',
    domain: 'd',
    descriptors: [{ key: 'k', descriptors: [{ key: 'l', metadata: { b: [{ y: 1, x: null }], a: 'text' } }] }],
  });
});

t.test('order of metadata keys does not affect the bytes', async (t) => {
  const [one, other] = [
    withMetadata('{"b":[{"y":1,"x":null}],"a":"text"}'),
    withMetadata('{"a":"text","b":[{"x":null,"y":1}]}'),
  ].map(encodeRules);
  t.strictSame(one, other);
});

t.test('metadata key __proto__ is an ordinary key', async (t) => {
  const plain = encodeRules(withMetadata('{"a":1}'));
  const withProto = encodeRules(withMetadata('{"__proto__":{"a":1}}'));
  t.not(Buffer.compare(plain, withProto), 0);
  t.ok(Buffer.from(withProto).includes('__proto__'));
});

t.test('version has 32 digits and depends on the content', async (t) => {
  const getVersion = (document: RuleDocument) => {
    const builder = new SnapshotBuilder();
    builder.put('d', document);
    return builder.build().resources.get('d')?.version;
  };
  const one = getVersion(withMetadata('{"a":1}'));
  t.match(one, /^[0-9a-f]{32}$/);
  t.not(one, getVersion(withMetadata('{"a":2}')));
  t.equal(one, getVersion(withMetadata('{"a":1}')));
});

t.test('a limiter that does not know rules on trial sees the rules in force only', async (t) => {
  const [key, trialDescriptors] = ['k', [{ key: 'on-trial' }]];
  const any = fromBinary(
    AnySchema,
    encodeRules({
      source: 's',
      spelling: resourceSpelling,
      domain: 'd',
      descriptors: [{ key }],
      trial: { descriptors: trialDescriptors },
    }),
  );
  // The definition of another limiter, without our fields.
  const file = clone(FileDescriptorProtoSchema, RateLimitConfigSchema.file.proto);
  for (const message of file.messageType) message.field = message.field.filter(({ number }) => number < 1000);
  const imports = RateLimitConfigSchema.file.dependencies.map(({ proto }) => proto);
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...imports, file] }));
  const plain = registry.getMessage(RateLimitConfigSchema.typeName);
  if (plain === undefined) throw new Error('no definition');
  t.strictSame(toJson(plain, fromBinary(plain, any.value)), {
    name: 'd',
    domain: 'd',
    descriptors: [{ key }],
  });
  t.match(fromBinary(RateLimitConfigSchema, any.value), { trialDescriptors });
});

t.test('type URL is that of the message', async (t) => {
  t.equal(rateLimitConfigType, `type.googleapis.com/${RateLimitConfigSchema.typeName}`);
});
