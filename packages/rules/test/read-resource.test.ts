import { runSteps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import { readResource } from '@tollgate/rules/read-resource';
import { getTrialDocument, type RuleDocument } from '@tollgate/rules/rule-document';
import t from 'tap';
import { dumpRules } from '../src/match/rule-set.ts';
import {
  badResources,
  conflictingResources,
  goodResources,
  manifestOf,
  unknownFieldResources,
} from './helpers/resource-cases.ts';

/** All that is wrong with a manifest, of its form or of its rules. */
function problemsOf(manifest: unknown): readonly RuleProblem[] {
  const result = readResource(manifest, 'shop/web');
  if (!result.ok) return result.problems;
  const compiled = runSteps(compileRules([result.document], { mergeDomains: true }));
  return compiled.ok ? [] : compiled.problems;
}

const linesOf = (manifest: unknown) => problemsOf(manifest).map(formatProblem);

function documentOf(spec: unknown): RuleDocument {
  const result = readResource(manifestOf(spec), 'shop/web');
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result.document;
}

function dumpOf(spec: unknown): readonly string[] {
  const compiled = runSteps(compileRules([documentOf(spec)], { mergeDomains: true }));
  if (!compiled.ok) throw new Error(compiled.problems.map(formatProblem).join('\n'));
  return dumpRules(compiled.rules).map((line) => line.replace(/, shadow.*/, ''));
}

const perMinute = { unit: 'Minute', requestsPerUnit: 10 };

for (const { name, spec } of goodResources) {
  t.test(`a manifest may have ${name}`, async (t) => {
    t.same(linesOf(manifestOf(spec)), []);
  });
}

for (const { name, spec, field, says } of [
  ...badResources,
  ...unknownFieldResources,
  ...conflictingResources,
]) {
  t.test(`a manifest may not have ${name}, and the problem names the field`, async (t) => {
    const [problem] = problemsOf(manifestOf(spec));
    t.equal(problem?.field, field);
    t.match(problem?.message, says);
  });
}

t.test('a tree of descriptors becomes the same tree of rules', async (t) => {
  const spec = {
    domain: 'shop',
    descriptors: [
      {
        key: 'route',
        value: 'api',
        rateLimit: { unit: 'Second', requestsPerUnit: 5 },
        descriptors: [{ key: 'user', rateLimit: { unlimited: true } }],
      },
    ],
  };
  t.same(dumpOf(spec), [
    'shop.route_api.user: unit=UNKNOWN requests_per_unit=0',
    'shop.route_api: unit=SECOND requests_per_unit=5',
  ]);
});

t.test('rules on trial are apart from the rules in force', async (t) => {
  const descriptors = [{ key: 'route', rateLimit: perMinute }];
  const document = documentOf({ domain: 'shop', descriptors, trial: true });
  t.same(document.descriptors, []);
  t.match(getTrialDocument(document), { domain: 'shop', descriptors: [{ key: 'route' }] });
  t.equal(getTrialDocument(documentOf({ domain: 'shop', descriptors, trial: false })), undefined);
  const settings = { atomic: true, onStoreFailure: 'Deny' };
  const withSettings = documentOf({ domain: 'shop', descriptors, trial: true, ...settings });
  t.match(withSettings, { atomic: undefined, onStoreFailure: undefined });
  t.match(getTrialDocument(withSettings), { atomic: true, onStoreFailure: 'deny' });
  const inForce = { ...documentOf({ domain: 'shop', descriptors, ...settings }), trial: { descriptors: [] } };
  t.match(getTrialDocument(inForce), { atomic: undefined, onStoreFailure: undefined });
  t.match(linesOf(manifestOf({ domain: 'shop', descriptors, trial: 'yes' })), [
    "shop/web: spec.trial: must be true or false, not the text 'yes'",
  ]);
});

t.test('limits become a tree in which common first entries share levels', async (t) => {
  const spec = {
    domain: 'shop',
    limits: [
      {
        name: 'deep',
        match: [{ key: 'route', value: 'api' }, { key: 'user' }],
        rateLimit: perMinute,
        shadowMode: true,
      },
      { name: 'wide', match: [{ key: 'route', value: 'api' }], rateLimit: { unlimited: true } },
      { name: 'else', match: [{ key: 'route' }], rateLimit: perMinute },
    ],
  };
  t.same(dumpOf(spec), [
    'shop.route: unit=MINUTE requests_per_unit=10',
    'shop.route_api.user: unit=MINUTE requests_per_unit=10',
    'shop.route_api: unit=UNKNOWN requests_per_unit=0',
  ]);
  const [api] = documentOf(spec).descriptors;
  t.equal(api?.rateLimit?.name, 'wide', 'the name of a limit is that of its rate limit');
  t.equal(api?.descriptors?.[0]?.shadowMode, true);
  t.equal(api?.shadowMode, undefined);
});

t.test('problems have the location of the limit or of the entry of its match', async (t) => {
  const limit = (name: string, keys: readonly string[], replaces: readonly string[]) => ({
    name,
    match: keys.map((key) => ({ key })),
    rateLimit: { ...perMinute, replaces: replaces.map((replaced) => ({ name: replaced })) },
  });
  const spec = {
    domain: 'd',
    limits: [
      limit('deep', ['a', 'b'], []),
      limit('self', ['a'], ['self']),
      { ...limit('one', [], []), match: [{ key: 'a' }, { key: 'c_d' }] },
      { ...limit('two', [], []), match: [{ key: 'a' }, { key: 'c', value: 'd' }] },
    ],
  };
  t.same(linesOf(manifestOf(spec)), [
    'shop/web: spec.limits[1].rateLimit.replaces: replaces should not contain name of same descriptor',
    "shop/web: spec.limits[3].match[1].key: duplicate descriptor composite key 'd.a.c_d' (the first is at shop/web: spec.limits[2].match[1].key)",
  ]);
});

t.test('all problems of a manifest are reported, each with its correction', async (t) => {
  const spec = {
    domain: 'd',
    descriptors: [
      { key: 'a', rate_limit: perMinute },
      { key: 'b', rateLimit: { unit: 'Minute', requestPerUnit: 1 } },
      { key: 'c', nonsense: 1, rateLimit: perMinute },
    ],
  };
  t.same(linesOf(manifestOf(spec)), [
    'shop/web: spec.descriptors[0].rate_limit: unknown field (it is spelled rateLimit)',
    'shop/web: spec.descriptors[1].rateLimit.requestPerUnit: unknown field (did you mean requestsPerUnit?)',
    'shop/web: spec.descriptors[1].rateLimit.requestsPerUnit: is required (or unlimited: true instead of a limit)',
    'shop/web: spec.descriptors[2].nonsense: unknown field (known here: key, value, rateLimit, descriptors, shadowMode, quotaMode, detailedMetric, valueToMetric, shareThreshold, metadata)',
  ]);
});

t.test('a manifest of another kind is refused', async (t) => {
  const first = (manifest: unknown) => linesOf(manifest)[0];
  const good = manifestOf({ domain: 'd', descriptors: [] });
  t.equal(first([]), 'shop/web: expected a RateLimitConfig manifest, not a list');
  t.equal(first(null), 'shop/web: expected a RateLimitConfig manifest, not null');
  t.match(
    first({ domain: 'd', descriptors: [] }),
    /this is a rule file of the rate limit service, not a RateLimitConfig/,
  );
  t.equal(first({ ...good, kind: 'ConfigMap' }), "shop/web: kind: must be RateLimitConfig, not 'ConfigMap'");
  t.equal(first({ ...good, kind: undefined }), 'shop/web: kind: must be RateLimitConfig, not nothing');
  t.equal(
    first({ ...good, apiVersion: 'ratelimit.tollgate.dev/v2' }),
    "shop/web: apiVersion: must be ratelimit.tollgate.dev/v1alpha1, not 'ratelimit.tollgate.dev/v2': that version is not known here",
  );
  t.equal(
    first({ ...good, apiVersion: 'v1' }),
    "shop/web: apiVersion: must be ratelimit.tollgate.dev/v1alpha1, not 'v1'",
  );
  t.equal(first({ ...good, spec: undefined }), 'shop/web: spec: is required');
  t.equal(first({ ...good, spec: 'x' }), "shop/web: spec: must be a mapping, not 'x'");
  t.match(first({ ...good, domain: 'd' }), /^shop\/web: domain: unknown field/);
});

t.test('metadata is JSON with any keys', async (t) => {
  const metadata: unknown = JSON.parse('{"__proto__":{"a":1},"constructor":null}');
  const [descriptor] = documentOf({
    domain: 'd',
    descriptors: [{ key: 'a', rateLimit: perMinute, metadata }],
  }).descriptors;
  t.equal(JSON.stringify(descriptor?.metadata), '{"__proto__":{"a":1},"constructor":null}');
  t.equal(Object.getPrototypeOf(descriptor?.metadata), Object.prototype);
});

t.test('a key called __proto__ is an unknown field', async (t) => {
  const manifest: unknown = JSON.parse(
    JSON.stringify(
      manifestOf({ domain: 'd', descriptors: [{ key: 'a', X: {}, rateLimit: perMinute }] }),
    ).replace('"X"', '"__proto__"'),
  );
  t.match(linesOf(manifest), [/^shop\/web: spec\.descriptors\[0\]\.__proto__: unknown field/]);
});

t.test('values that JSON does not have are refused in metadata', async (t) => {
  const withMetadata = (metadata: unknown) =>
    manifestOf({ domain: 'd', descriptors: [{ key: 'a', rateLimit: perMinute, metadata }] });
  const field = 'shop/web: spec.descriptors[0].metadata';
  t.same(linesOf(withMetadata({ a: { b: [1, Number.NaN] } })), [
    `${field}.a.b[1]: must be a value that JSON has, not NaN`,
  ]);
  t.same(linesOf(withMetadata({ a: new Date(0) })), [
    `${field}.a: must be a value that JSON has, not a date`,
  ]);
  t.same(linesOf(withMetadata({ a: undefined })), [
    `${field}.a: must be a value that JSON has, not undefined`,
  ]);
  const cyclic: Record<string, unknown> = {};
  cyclic.a = cyclic;
  t.match(linesOf(withMetadata(cyclic)), [/\.metadata(\.a)+: nests deeper than 16 levels$/]);
});

t.test('references that expand beyond the limit of values end the reading', async (t) => {
  let list: object[] = [{ key: 'a', rateLimit: perMinute }];
  for (let level = 1; level < 8; level++) {
    const descriptors = list;
    list = Array.from({ length: 100 }, (_, index) => ({ key: 'a', value: `${index}`, descriptors }));
  }
  t.match(linesOf(manifestOf({ domain: 'd', descriptors: list })), [/more than 1000000 values; split it$/]);
  let bomb: unknown = 1;
  for (let level = 0; level < 10; level++) bomb = Array.from({ length: 100 }, () => bomb);
  const metadata = { bomb };
  const spec = { domain: 'd', descriptors: [{ key: 'a', rateLimit: perMinute, metadata }] };
  t.match(linesOf(manifestOf(spec)), [/more than 1000000 values; split it$/]);
});

t.test('a descriptors list that contains itself ends at the last level', async (t) => {
  const descriptor: Record<string, unknown> = { key: 'a' };
  descriptor.descriptors = [descriptor];
  t.match(linesOf(manifestOf({ domain: 'd', descriptors: [descriptor] })), [
    /deeper than 8 levels of descriptors$/,
  ]);
});

t.test('lists and texts have the limits of the CRD', async (t) => {
  const descriptors = Array.from({ length: 4097 }, (_, index) => ({
    key: `k${index}`,
    rateLimit: perMinute,
  }));
  t.same(linesOf(manifestOf({ domain: 'd', descriptors })), [
    'shop/web: spec.descriptors: must have at most 4096 items, not 4097',
  ]);
  t.same(linesOf(manifestOf({ domain: 'd', descriptors: descriptors.slice(1) })), []);
});

t.test('a long text is truncated in messages', async (t) => {
  const [line = ''] = linesOf(manifestOf({ domain: 'd', descriptors: 'x'.repeat(10_000) }));
  t.match(line, /not 'x{100}…'$/);
  const [unknown = ''] = linesOf(manifestOf({ domain: 'd', descriptors: [], ['y'.repeat(10_000)]: 1 }));
  t.ok(unknown.length < 300, unknown);
});
