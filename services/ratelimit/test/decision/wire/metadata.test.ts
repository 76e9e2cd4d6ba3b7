import type { JsonObject } from '@tollgate/kit/json';
import t from 'tap';
import type { DescriptorLimit } from '../../../src/decision/find-limit.ts';
import { getDynamicMetadata } from '../../../src/decision/wire/metadata.ts';
import { Code } from '../../../src/decision/wire/response.ts';
import { ruleOfAMinute } from '../../support/limit-of-a-minute.ts';
import { descriptor } from '../../support/make-decider.ts';

/** As it would be written: objects without a prototype are plain ones. */
function plain(value: JsonObject): Record<string, unknown> {
  return JSON.parse(JSON.stringify(value));
}

const unlimited = (metadata?: JsonObject): DescriptorLimit => ({
  kind: 'unlimited',
  rule: { ...ruleOfAMinute(0), metadata },
});

/**
 * Metadata of rules that apply to one descriptor each; `over` says which of them are over their
 * limits.
 */
function merged(metadata: readonly (JsonObject | undefined)[], over: readonly number[] = []): unknown {
  const request = { domain: 'd', descriptors: metadata.map(() => descriptor({})), hitsAddend: 0 };
  const statuses = metadata.map((_, i) => ({
    code: over.includes(i) ? Code.OVER_LIMIT : Code.OK,
    limitRemaining: 0,
    quota: false,
  }));
  return plain(getDynamicMetadata(request, metadata.map(unlimited), statuses)).metadata;
}

t.test('dynamic metadata has the domain, entries, overrides and hits of the request', async (t) => {
  const descriptors = [
    descriptor({ a: '1', b: '' }),
    descriptor({ c: '3' }, { hitsAddend: 0n, limit: { requestsPerUnit: 5, unit: 7 } }),
    descriptor({}, { limit: { requestsPerUnit: 0, unit: 1 } }),
  ];
  t.strictSame(plain(getDynamicMetadata({ domain: 'd', descriptors, hitsAddend: 2 }, [], [])), {
    domain: 'd',
    descriptors: [
      { entries: ['a=1', 'b='] },
      { entries: ['c=3'], limit: 'requests_per_unit:5 unit:WEEK', hitsAddend: 0 },
      { entries: [], limit: 'unit:SECOND' },
    ],
    hitsAddend: 2,
  });
});

t.test('hits of 0 are omitted from the request', async (t) => {
  const request = { domain: 'd', descriptors: [descriptor({ a: '1' })], hitsAddend: 0 };
  t.strictSame(plain(getDynamicMetadata(request, [], [])), {
    domain: 'd',
    descriptors: [{ entries: ['a=1'] }],
  });
});

t.test('metadata of rules is merged to any depth, and the first value wins', async (t) => {
  t.strictSame(
    merged([
      { a: 1, deep: { x: { one: 1 }, list: [1] } },
      undefined,
      { a: 2, b: null, deep: { x: { one: 2, two: 2 }, list: [2], y: 3 } },
      { deep: 'text', b: 5 },
    ]),
    { a: 1, b: null, deep: { x: { one: 1, two: 2 }, list: [1], y: 3 } },
  );
});

t.test('merging does not change the rules', async (t) => {
  const first = { deep: { x: 1 } };
  merged([first, { deep: { y: 2 } }]);
  t.strictSame(first, { deep: { x: 1 } });
});

t.test('metadata of a rule over its limit is omitted, and so is an empty result', async (t) => {
  t.strictSame(merged([{ a: 1 }, { b: 2 }], [0]), { b: 2 });
  t.equal(merged([{ a: 1 }], [0]), undefined);
  t.equal(merged([{}]), undefined);
});

t.test('__proto__ is an ordinary key', async (t) => {
  const hostile = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"x":1}}');
  t.equal(JSON.stringify(merged([hostile])), JSON.stringify(hostile));
  t.notOk('polluted' in {});
});
