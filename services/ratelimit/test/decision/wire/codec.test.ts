import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import fc from 'fast-check';
import t from 'tap';
import { decodeRequest, encodeDecision } from '../../../src/decision/wire/codec.ts';
import type { RateLimitRequest } from '../../../src/decision/wire/request.ts';
import { Code, type Decision, toMessage } from '../../../src/decision/wire/response.ts';

const text = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('', 'tenant', '\ufeffbom', 'x'.repeat(300)),
);
const uint32 = fc.oneof(fc.nat(300), fc.integer({ min: 0, max: 0xffff_ffff }));
const entries = fc.array(fc.record({ key: text, value: text }), { maxLength: 4 });

/** Requests of Envoy, most of them without the fields that are rare. */
const request = fc
  .record({
    domain: text,
    descriptors: fc.array(
      fc.oneof(
        { weight: 4, arbitrary: fc.record({ entries }) },
        {
          weight: 1,
          arbitrary: fc.record({
            entries,
            limit: fc.record({ requestsPerUnit: uint32, unit: fc.nat(8) }),
            hitsAddend: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
            isNegativeHits: fc.boolean(),
          }),
        },
      ),
      { maxLength: 5 },
    ),
    hitsAddend: uint32,
  })
  .map((message) => toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, message)));

/** The part of a request that decisions read, or the reason why it cannot be read. */
function read(decode: (bytes: Uint8Array) => RateLimitRequest, bytes: Uint8Array): unknown {
  try {
    const { domain, hitsAddend, descriptors } = decode(bytes);
    return {
      domain,
      hitsAddend,
      descriptors: descriptors.map((descriptor) => ({
        entries: descriptor.entries.map(({ key, value }) => ({ key, value })),
        limit: descriptor.limit && { ...descriptor.limit },
        hitsAddend: descriptor.hitsAddend,
        isNegativeHits: descriptor.isNegativeHits ?? false,
      })),
    };
  } catch {
    return 'malformed';
  }
}

function equalsReflection(bytes: Uint8Array): void {
  const expected = read((all) => fromBinary(RateLimitRequestSchema, all), bytes);
  const actual = read(decodeRequest, bytes);
  if (!isEqual(actual, expected)) throw new Error(`${show(actual)} instead of ${show(expected)}`);
}

function show(value: unknown): string {
  return JSON.stringify(value, (_key, one) => (typeof one === 'bigint' ? `${one}n` : one));
}

const isEqual = (a: unknown, b: unknown) => show(a) === show(b);

t.test('requests are read as protobuf-es reads them', async (t) => {
  fc.assert(fc.property(request, equalsReflection), { numRuns: 2_000 });
  t.pass('2,000 requests');
});

t.test('damaged requests are read or rejected as by protobuf-es', async (t) => {
  const damage = fc.array(fc.record({ at: fc.nat(200), byte: fc.nat(255) }), { minLength: 1, maxLength: 4 });
  const damaged = fc.tuple(request, damage, fc.nat(200)).map(([bytes, changes, length]) => {
    const copy = Uint8Array.from(bytes);
    for (const { at, byte } of changes) if (at < copy.length) copy[at] = byte;
    return length < 100 ? copy.subarray(0, length) : copy;
  });
  fc.assert(fc.property(damaged, equalsReflection), { numRuns: 5_000 });
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), equalsReflection), { numRuns: 2_000 });
  t.pass('7,000 inputs');
});

t.test('responses have the bytes of protobuf-es', async (t) => {
  const limit = fc.record({
    requestsPerUnit: uint32,
    unit: fc.constantFrom('second', 'minute', 'hour', 'day', 'week', 'month', 'year', undefined),
    name: fc.oneof(fc.constant(''), text),
  });
  const status = fc.record(
    {
      code: fc.constantFrom(Code.OK, Code.OVER_LIMIT),
      currentLimit: limit,
      limitRemaining: uint32,
      secondsUntilReset: fc.nat(31_622_400),
      quota: fc.boolean(),
    },
    { requiredKeys: ['code', 'limitRemaining', 'quota'] },
  );
  const decision = fc.record(
    {
      overallCode: fc.constantFrom(Code.OK, Code.OVER_LIMIT),
      statuses: fc.array(status, { maxLength: 6 }),
      responseHeaders: fc.array(fc.record({ key: text, value: text }), { maxLength: 3 }),
      dynamicMetadata: fc.constant({ domain: 'd', list: [1, 'x', null] }),
    },
    { requiredKeys: ['overallCode', 'statuses', 'responseHeaders'] },
  );
  fc.assert(
    fc.property(decision, (made: Decision) => {
      const expected = toBinary(RateLimitResponseSchema, toMessage(made));
      return Buffer.from(encodeDecision(made)).equals(expected);
    }),
    { numRuns: 3_000 },
  );
  t.pass('3,000 responses');
});
