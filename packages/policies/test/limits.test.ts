import { runSteps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import { type Entry, matchEntries } from '@tollgate/rules/match';
import t from 'tap';
import { toRuleDocument } from '../src/compile/limits.ts';
import { compileProblems, readSpec } from './helpers/policies.ts';

/** Finds the rule of a descriptor in what limiters get. */
function createFinder(spec: string) {
  const document = toRuleDocument(readSpec(spec));
  const compiled = runSteps(compileRules([document], { mergeDomains: false }));
  const root = compiled.ok ? compiled.rules.domains.get('policy/shop/orders') : undefined;
  if (root === undefined) throw new Error(JSON.stringify(compiled));
  return (...entries: readonly (readonly [key: string, value: string])[]) =>
    matchEntries(
      root,
      entries.map(([key, value]): Entry => ({ key, value })),
    )?.rule;
}

t.test('a limit counts by its attributes, and a plan with its own number comes first', async (t) => {
  const find = createFinder(`
  hosts: [a.test]
  limits:
    - name: per-user
      by: [User, Method]
      requests: 60
      per: Minute
      plans: { pro: { requests: 600 }, enterprise: { unlimited: true } }
    - { name: all, by: [Plan], requests: 5, period: 90s, mode: Shadow, plans: { pro: { requests: 6 } } }`);
  const caller = [
    ['user_id', 'u1'],
    ['method', 'GET'],
  ] as const;
  t.match(find(['limit', 'per-user'], ...caller), {
    requestsPerUnit: 60,
    unit: 'minute',
    unlimited: false,
    name: 'per-user',
  });
  t.match(find(['limit', 'per-user'], ['plan', 'pro'], ...caller), { requestsPerUnit: 600, unit: 'minute' });
  t.match(find(['limit', 'per-user'], ['plan', 'enterprise'], ...caller), { unlimited: true });
  t.equal(find(['limit', 'per-user'], ['plan', 'free'], ...caller), undefined, 'other plans are not sent');
  t.match(find(['limit', 'all'], ['plan', 'free']), { requestsPerUnit: 5, shadowMode: true });
  t.match(find(['limit', 'all'], ['plan', 'pro'], ['plan', 'pro']), { requestsPerUnit: 6 });
});

t.test('options of a limit are those of the rules', async (t) => {
  const { descriptors } = toRuleDocument(
    readSpec(`
  hosts: [a.test]
  limits:
    - { name: a, by: [User], requests: 6, per: Hour, algorithm: TokenBucket, burst: 3, onStoreFailure: Deny }
    - { name: b, by: [User], requests: 600, per: Day, timeZone: Europe/Berlin, lease: 5% }`),
  );
  const limits = descriptors.map(({ descriptors: below }) => below?.[0]?.rateLimit);
  t.match(limits[0], {
    algorithm: 'token_bucket',
    burst: 3,
    onStoreFailure: 'deny',
    unit: 'hour',
    name: 'a',
  });
  t.match(limits[1], { unit: 'day', requestsPerUnit: 600, timeZone: 'Europe/Berlin', lease: '5%' });
});

t.test('limits in the mode Trial are rules on trial, which have the same form and checks', async (t) => {
  const spec = (requests: string) => `
  hosts: [a.test]
  limits:
    - { name: now, by: [User], requests: 60, per: Hour, mode: Enforce }
    - { name: soon, by: [User], ${requests}, per: Hour, mode: Trial, plans: { pro: { requests: 9 } } }`;
  const document = toRuleDocument(readSpec(spec('requests: 6')));
  t.match(document.descriptors, [{ value: 'now' }]);
  t.equal(document.descriptors.length, 1);
  t.match(document.trial, {
    descriptors: [
      {
        ...{ key: 'limit', value: 'soon' },
        descriptors: [
          { key: 'plan', value: 'pro' },
          { key: 'user_id', rateLimit: { requestsPerUnit: 6 } },
        ],
      },
    ],
  });
  t.same(compileProblems(spec('requests: 6, burst: 5')), [
    'shop/orders: spec.limits[1].plans.pro.burst: burst requires the algorithm TokenBucket',
    'shop/orders: spec.limits[1].burst: burst requires the algorithm TokenBucket',
  ]);
});

t.test('problems of limits have the names of their fields', async (t) => {
  const invalid: readonly (readonly [limit: string, ...problems: string[]])[] = [
    ['requests: 1', 'spec.limits[0].per: is required, or period instead'],
    ['per: Hour', 'spec.limits[0].requests: is required, or unlimited: true instead'],
    [
      'requests: 1, per: Hour, period: 90s',
      'spec.limits[0].period: cannot be combined with per; remove either',
    ],
    [
      'requests: 1, per: Hour, unlimited: true',
      'spec.limits[0].requests: cannot be combined with unlimited: true; remove either',
    ],
    [
      'requests: 1, per: Hour, plans: { pro: {} }',
      'spec.limits[0].plans.pro.requests: is required, or unlimited: true instead',
    ],
    ['requests: 1, per: Hour, burst: 5', 'spec.limits[0].burst: burst requires the algorithm TokenBucket'],
    ['requests: 1, per: Hour, timeZone: Mars/Base', 'spec.limits[0].timeZone: '],
    ['requests: 1, period: 100ms', 'spec.limits[0].period: '],
  ];
  for (const [limit, ...expected] of invalid) {
    const problems = compileProblems(`  hosts: [a.test]\n  limits: [{ name: a, by: [User], ${limit} }]`);
    t.equal(problems.length, expected.length, problems.join('\n'));
    for (const [index, problem] of expected.entries())
      t.match(problems[index], `shop/orders: ${problem}`, limit);
  }
  const twice = '{ name: a, by: [User], requests: 1, per: Hour }';
  t.same(compileProblems(`  hosts: [a.test]\n  limits: [${twice}, ${twice}]`), [
    "shop/orders: spec.limits[1].name: 'a' is the name of another limit: names must differ",
  ]);
  t.same(
    compileProblems(
      '  hosts: [a.test]\n  limits: [{ name: a, by: [{ header: a }, { header: a }], requests: 1, per: Hour }]',
    ),
    ['shop/orders: spec.limits[0].by: has an attribute twice'],
  );
});

t.test('limits of defaults and overrides are rules of the same domain', async (t) => {
  const find = createFinder(`
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: main }]
  defaults: { limits: [{ name: a, by: [User], requests: 1, per: Hour }] }
  overrides: { limits: [{ name: cap, by: [User], requests: 9, per: Hour }] }`);
  t.match(find(['limit', 'a'], ['user_id', 'u1']), { requestsPerUnit: 1 });
  t.match(find(['limit', 'cap'], ['user_id', 'u1']), { requestsPerUnit: 9 });
});

t.test('a problem of a limit of overrides has its path', async (t) => {
  const problems = compileProblems(`
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: main }]
  overrides: { limits: [{ name: cap, by: [User], requests: 9 }] }`);
  t.same(problems, ['shop/orders: spec.overrides.limits[0].per: is required, or period instead']);
});
