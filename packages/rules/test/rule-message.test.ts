import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { runSteps } from '@tollgate/kit/time';
import {
  RateLimitConfigSchema,
  RateLimitDescriptorSchema,
  RateLimitPolicySchema,
  RateLimitUnit,
} from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { compileRules } from '@tollgate/rules/compile';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { decodeMessage, fromMessage, toMessage } from '@tollgate/rules/rule-message';
import { parseFirstDocument } from '@tollgate/yaml/first-document';
import t from 'tap';
import { resourceSpelling } from '../src/definition/spelling.ts';
import { dumpRules, unitSeconds } from '../src/match/rule-set.ts';
import { readRuleFile } from '../src/read/rule-file.ts';

/** The document of a YAML text that is known to be well formed. */
function documentOf(text: string): RuleDocument {
  const parsed = runSteps(parseFirstDocument(text));
  if (!parsed.ok) throw new Error(parsed.error.reason);
  const refuse = (_node: number, _path: string, message: string): void => {
    throw new Error(message);
  };
  return runSteps(readRuleFile(parsed.tree, 'rules.yaml', refuse, refuse));
}

/** Over the wire and back. */
const sent = (document: RuleDocument): RuleDocument =>
  fromMessage(fromBinary(RateLimitConfigSchema, toBinary(RateLimitConfigSchema, toMessage(document))));

/** The content of a document: without places, and without what means the same as its absence. */
const contentOf = (document: RuleDocument): unknown =>
  JSON.parse(
    JSON.stringify({ ...document, source: '', spelling: undefined }, (key, value: unknown) =>
      key === 'at' || value === false ? undefined : value,
    ),
  );

const everyField = `
domain: shop
on_store_failure: local
atomic: true
descriptors:
  - key: plan
    value: free*
    share_threshold: true
    value_to_metric: true
    shadow_mode: true
    rate_limit: { unit: week, requests_per_unit: 4294967295, name: free, replaces: [{ name: a }, { name: b }] }
    metadata: { owner: team, tags: [1, 2.5, true, ~, { deep: x }], __proto__: { own: 1 } }
    descriptors:
      - key: user
        quota_mode: true
        detailed_metric: true
        rate_limit: { unit: Month, requests_per_unit: 0 }
      - key: admin
        rate_limit: { unlimited: true }
      - key: burst
        rate_limit: { unit: second, requests_per_unit: 5, algorithm: token_bucket, burst: 50 }
      - key: leased
        rate_limit: { unit: second, requests_per_unit: 500, lease: 5% }
      - key: charged
        rate_limit: { unit: second, requests_per_unit: 5, algorithm: token_bucket, charge: always, max_debt: 0 }
      - key: charged by default
        rate_limit: { unit: second, requests_per_unit: 5, algorithm: sliding_window, charge: always }
      - key: not charged
        rate_limit: { unit: second, requests_per_unit: 5, charge: allowed }
      - key: sliding
        rate_limit: { unit: second, requests_per_unit: 5, algorithm: sliding_window }
      - key: concurrency
        rate_limit: { unit: second, requests_per_unit: 5, algorithm: concurrency }
      - key: period
        rate_limit: { period: 5m, requests_per_unit: 5 }
      - key: calendar
        rate_limit: { unit: day, time_zone: Europe/Berlin, requests_per_unit: 5 }
      - key: allow
        rate_limit: { unit: second, requests_per_unit: 5, on_store_failure: allow }
      - key: deny
        rate_limit: { unit: second, requests_per_unit: 5, on_store_failure: deny }
`;

const withTrial = (document: RuleDocument): RuleDocument => ({
  ...document,
  trial: { descriptors: document.descriptors, onStoreFailure: 'local', atomic: true },
});

t.test('every field of a document is preserved on the wire', async (t) => {
  const document = withTrial(documentOf(everyField));
  const expected = JSON.stringify(contentOf(document)).replaceAll('"Month"', '"month"');
  t.equal(JSON.stringify(sorted(contentOf(sent(document)))), JSON.stringify(sorted(JSON.parse(expected))));
});

/**
 * Keys in order, so that two texts can be compared; unlike a deep comparison this sees an own
 * `__proto__`.
 */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .map(([key, item]): [string, unknown] => [key, sorted(item)])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

t.test('a decoded document compiles to the same rules', async (t) => {
  const document = documentOf(everyField);
  const [before, after] = [document, sent(document)].map((one) =>
    runSteps(compileRules([one], { mergeDomains: false })),
  );
  t.ok(before?.ok && after?.ok);
  if (before?.ok && after?.ok) t.same(dumpRules(after.rules), dumpRules(before.rules));
});

t.test('every unit has its number on the wire', async (t) => {
  const numbers = Object.keys(unitSeconds).map((unit) => {
    const document = {
      source: '',
      spelling: resourceSpelling,
      domain: 'd',
      descriptors: [{ key: 'k', rateLimit: { unit, requestsPerUnit: 1 } }],
    };
    t.equal(sent(document).descriptors[0]?.rateLimit?.unit, unit);
    return toMessage(document).descriptors[0]?.rateLimit?.unit;
  });
  t.same(numbers, [1, 2, 3, 4, 7, 5, 6]);
});

t.test('a unit that is missing or unknown is a problem once compiled', async (t) => {
  const unitOf = (unit: RateLimitUnit) => {
    const rateLimit = create(RateLimitPolicySchema, { unit, requestsPerUnit: 1 });
    const descriptors = [create(RateLimitDescriptorSchema, { key: 'k', rateLimit })];
    const document = fromMessage(create(RateLimitConfigSchema, { name: 'shop', domain: 'd', descriptors }));
    const result = runSteps(compileRules([document], { mergeDomains: false }));
    return result.ok ? [] : result.problems.map(({ source, message }) => `${source}: ${message}`);
  };
  t.same(unitOf(RateLimitUnit.UNKNOWN), ["shop: invalid rate limit unit ''"]);
  t.same(unitOf(9 as RateLimitUnit), ["shop: invalid rate limit unit '9'"]);
});

t.test('a message is named after its domain, a document after its message', async (t) => {
  t.equal(toMessage({ source: 'file.yaml', domain: 'shop', descriptors: [] }).name, 'shop');
  const sourceOf = (name: string, domain: string) =>
    fromMessage(create(RateLimitConfigSchema, { name, domain })).source;
  t.equal(sourceOf('one', 'shop'), 'one');
  t.equal(sourceOf('', 'shop'), 'shop');
  t.equal(sourceOf('', ''), '(unnamed resource)');
});

t.test('an encoded message is decoded in steps to the same document', async (t) => {
  const bytes = toBinary(RateLimitConfigSchema, toMessage(withTrial(documentOf(everyField))));
  const whole = fromMessage(fromBinary(RateLimitConfigSchema, bytes));
  // The unknown field 9, as a varint and as text.
  const newer = Buffer.concat([Buffer.from([0x48, 1]), bytes, Buffer.from([0x4a, 1, 0x61])]);
  for (const encoded of [bytes, newer]) t.same(runSteps(decodeMessage(encoded)), whole);
  let steps = 0;
  for (const _ of decodeMessage(toBinary(RateLimitConfigSchema, toMessage(flat(10))))) steps++;
  t.equal(steps, 10);
});

t.test('bytes that are not a message are an error', async (t) => {
  const bytes = toBinary(RateLimitConfigSchema, toMessage(flat(2)));
  t.throws(() => runSteps(decodeMessage(bytes.subarray(0, bytes.length - 1))));
  t.throws(() => runSteps(decodeMessage(Uint8Array.of(0x1a, 2, 0xff, 0xff))));
});

const flat = (count: number): RuleDocument => ({
  source: '',
  spelling: resourceSpelling,
  domain: 'd',
  descriptors: Array.from({ length: count }, (_, i) => ({ key: `k${i}` })),
});
