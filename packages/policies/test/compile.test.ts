import t from 'tap';
import {
  compileProblems,
  compileValid,
  compileWarnings,
  manifestText,
  readProblems,
} from './helpers/policies.ts';
import { segmentsOf, toRequest } from './helpers/routes.ts';

const gateway = `
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: main }]`;

const authenticated = { type: 'Authenticated', assurance: 'aal1', anonymousUsers: false };

/** The rule of a request. */
function findRule(spec: string, path: string, method = 'GET') {
  const { rules, fallback } = compileValid(spec);
  return rules.find(toRequest({ method }), segmentsOf(path)) ?? fallback;
}

t.test('without access, callers must be signed in, and all limits apply', async (t) => {
  const policy = compileValid(`
  hosts: [a.test]
  limits:
    - { name: a, by: [User, { header: x-region }, { claim: department }], requests: 1, per: Hour, plans: { pro: { requests: 2 } } }
    - { name: b, by: [Address], requests: 1, per: Hour }
    - { name: c, only: true, by: [Organization], requests: 1, per: Hour }
  rules: [{ matches: [{ path: { value: /x } }], limits: [c] }]`);
  t.same([policy.name, policy.limitDomain], ['shop/orders', 'policy/shop/orders']);
  t.same(policy.fallback, {
    label: undefined,
    access: authenticated,
    limits: [
      { name: 'a', plans: new Set(['pro']), keys: ['user_id', 'header_x-region', 'claim_department'] },
      { name: 'b', plans: undefined, keys: ['remote_address'] },
    ],
  });
});

t.test('the first rule that matches replaces access and limits', async (t) => {
  const spec = `
  hosts: [a.test]
  access: { roles: [admin] }
  limits:
    - { name: all, by: [User], requests: 1, per: Hour }
    - { name: export, only: true, by: [User], requests: 1, per: Hour }
  rules:
    - { matches: [{ path: { value: /orders/export }, methods: [GET] }], access: { roles: [auditor] }, limits: [export] }
    - { matches: [{ path: { type: Exact, value: /health } }], access: { type: Public }, limits: [] }
    - { matches: [{ path: { value: /orders } }], access: { assurance: AAL2, anonymousUsers: true } }`;
  const summary = (path: string, method?: string) => {
    const { label, access, limits } = findRule(spec, path, method);
    return [label, access, limits.map(({ name }) => name)];
  };
  t.same(summary('/'), [undefined, { ...authenticated, roles: ['admin'] }, ['all']]);
  t.same(summary('/orders/export/1'), [
    '/orders/export',
    { ...authenticated, roles: ['auditor'] },
    ['export'],
  ]);
  t.same(summary('/orders/export', 'HEAD'), summary('/orders/export'), 'HEAD is GET');
  t.same(summary('/orders/export', 'POST'), [
    '/orders',
    { ...authenticated, assurance: 'aal2', anonymousUsers: true },
    ['all'],
  ]);
  t.same(summary('/health'), ['/health', { type: 'Public' }, []]);
});

t.test('a rule without access has that of the policy', async (t) => {
  const spec =
    '  hosts: [a.test]\n  access: { type: Denied }\n  rules: [{ matches: [{ path: { value: /x } }] }]';
  t.same(findRule(spec, '/x').access, { type: 'Denied' });
});

t.test('what contradicts itself is a problem with the path of the field', async (t) => {
  const invalid: readonly (readonly [spec: string, ...problems: string[]])[] = [
    ['  access: {}', 'spec.hosts: needs exactly one of hosts and targetRefs, and has neither'],
    [
      '  hosts: [a.test]\n  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: a }]',
      'spec.hosts: needs exactly one of hosts and targetRefs, and has both',
    ],
    [
      '  hosts: [a.test]\n  access: { type: Public, roles: [admin] }',
      'spec.access.roles: has no effect with type: Public; remove either',
    ],
    [
      '  hosts: [a.test]\n  rules: [{ matches: [{}], access: { type: Denied, scopes: [a] } }]',
      'spec.rules[0].access.scopes: has no effect with type: Denied; remove either',
    ],
    [
      '  hosts: [a.test]\n  limits: [{ name: a, by: [User], requests: 1, per: Hour }]\n  rules: [{ matches: [{}], limits: [b] }]',
      "spec.rules[0].limits[0]: no limit is named 'b': there are a",
    ],
    [
      '  hosts: [a.test]\n  rules: [{ matches: [{ path: { value: orders } }, { path: { type: RegularExpression, value: "(" } }] }]',
      'spec.rules[0].matches[0].path.value: must start with a slash',
      'spec.rules[0].matches[1].path.value: is no regular expression of RE2: ',
    ],
    [
      '  hosts: [a.test]\n  rules: [{ matches: [{ path: { value: /a//b } }] }]',
      'spec.rules[0].matches[0].path.value: requests with /a//b are always rejected: ',
    ],
    [
      '  hosts: [a.test]\n  rules: [{ matches: [{ methods: [get, FETCH] }] }]',
      'spec.rules[0].matches[0].methods[0]: must be GET',
      "spec.rules[0].matches[0].methods[1]: 'FETCH' is no method of HTTP",
    ],
    [
      '  hosts: [a.test]\n  rules: [{ matches: [{ headers: [{ name: x-a, value: "1" }, { name: X-A, value: "2" }] }] }]',
      "spec.rules[0].matches[0].headers[1].name: 'X-A' is compared twice: remove one",
    ],
    [
      '  hosts: [a.test]\n  rules: [{ matches: [{ path: { value: /a } }] }, { matches: [{ path: { value: /b } }, { path: { value: /a/b }, methods: [GET] }] }]',
      'spec.rules[1].matches[1]: never matches: rules[0].matches[0] matches all of its requests',
    ],
  ];
  for (const [spec, ...expected] of invalid) {
    const problems = compileProblems(spec);
    t.equal(problems.length, expected.length, problems.join('\n'));
    for (const [index, problem] of expected.entries())
      t.match(problems[index], `shop/orders: ${problem}`, spec);
  }
});

t.test('what looks like a mistake is a warning', async (t) => {
  t.same(
    compileWarnings(
      '  hosts: [a.test]\n  limits: [{ name: a, only: true, by: [User], requests: 1, per: Hour }]',
    ),
    ["shop/orders: spec.limits[0].only: no rule names 'a', so it has no effect"],
  );
  const good =
    '  hosts: [a.test]\n  access: { type: Public }\n  limits: [{ name: a, by: [Address], requests: 1, per: Hour }]';
  t.same(compileWarnings(good), []);
});

t.test('callers that a policy allows and no limit counts are a warning', async (t) => {
  const byUser = 'limits: [{ name: a, by: [User], requests: 1, per: Hour }]';
  const cases: readonly (readonly [spec: string, ...warnings: string[]])[] = [
    [
      byUser,
      'no limit counts API keys without a user, machine clients on the target: add a limit by ApiKey, and one by Client, or allow fewer callers',
    ],
    [
      `access: { type: Public }\n  ${byUser}`,
      'no limit counts callers without a credential, API keys without a user, machine clients on the target: add a limit by Address',
    ],
    [`access: { credentials: [User] }\n  ${byUser}`],
    [`access: { credentials: [User, ApiKey], issuers: [tollgate] }\n  ${byUser}`],
    [`access: { credentials: [User, ApiKey], audiences: ["https://a.test"] }\n  ${byUser}`],
    [`access: { assurance: AAL2 }\n  ${byUser}`],
    [`access: { type: Denied }\n  ${byUser}`],
    ['limits: [{ name: a, by: [Address, Method, Rule], requests: 1, per: Hour }]'],
    ['limits: [{ name: a, by: [Plan], requests: 1, per: Hour }]'],
    [
      'access: { credentials: [User] }\n  limits: [{ name: a, by: [User, { header: x-region }], requests: 1, per: Hour }]',
      'no limit counts users on the target: add a limit by User',
    ],
    [
      'access: { credentials: [User] }\n  limits: [{ name: a, by: [Organization], requests: 1, per: Hour }]',
      'no limit counts users on the target',
    ],
    [
      `access: { credentials: [User] }
  rules:
    - { matches: [{ path: { value: /open } }], access: { type: Public } }
    - { matches: [{ path: { value: /health } }], access: { type: Public }, limits: [] }
    - { matches: [{ path: { value: /also } }], access: { type: Public } }
  ${byUser}`,
      'no limit counts callers without a credential, API keys without a user, machine clients on /open, /also: ',
    ],
    [
      'limits: [{ name: a, by: [User], requests: 1, per: Hour }, { name: b, by: [ApiKey], requests: 1, per: Hour }, { name: c, by: [Client], requests: 1, per: Hour }]',
    ],
  ];
  for (const [spec, ...expected] of cases) {
    const warnings = compileWarnings(`  hosts: [a.test]\n  ${spec}`);
    t.equal(warnings.length, expected.length, `${spec}\n${warnings.join('\n')}`);
    for (const [index, text] of expected.entries())
      t.equal(warnings[index]?.startsWith(`shop/orders: spec.limits: ${text}`), true, spec);
  }
});

t.test('limits and access of overrides count for the coverage of the other limits', async (t) => {
  const byUser = 'limits: [{ name: a, by: [User], requests: 1, per: Hour }]';
  const byAddress = 'limits: [{ name: b, by: [Address], requests: 1, per: Hour }]';
  const warnings = (spec: string) =>
    compileWarnings(`${gateway}\n  ${spec}`).map((text) => text.slice(0, text.indexOf(' on ')));
  const counts = 'no limit counts';
  t.same(warnings(`access: { type: Public }\n  ${byUser}\n  overrides: { ${byAddress} }`), []);
  t.same(
    warnings(`access: { type: Public }\n  ${byUser}\n  overrides: { access: { credentials: [User] } }`),
    [],
  );
  t.same(warnings(`defaults: { ${byUser} }`), [
    `shop/orders: spec.defaults.limits: ${counts} API keys without a user, machine clients`,
  ]);
  t.same(warnings(`${byAddress}\n  overrides: { access: {}, ${byUser.replace('name: a', 'name: c')} }`), [
    `shop/orders: spec.overrides.limits: ${counts} API keys without a user, machine clients`,
  ]);
  const only = byAddress.replace('by:', 'only: true, by:');
  t.match(compileWarnings(`${gateway}\n  defaults: { ${only} }`), [
    "shop/orders: spec.defaults.limits[0].only: no rule names 'b', so it has no effect",
  ]);
});

t.test('headers that rules compare and limits count by are collected', async (t) => {
  const { headers } = compileValid(`
  hosts: [a.test]
  rules: [{ matches: [{ headers: [{ name: X-One, value: "1" }] }] }]
  limits: [{ name: a, by: [User, { header: x-two }], requests: 1, per: Hour }]`);
  t.same(headers, ['x-one', 'x-two']);
});

t.test('defaults are access and limits, and overrides a policy of its own in the same domain', async (t) => {
  const policy = compileValid(`${gateway}
  defaults:
    access: { roles: [staff] }
    limits: [{ name: a, by: [User], requests: 1, per: Hour }]
  overrides:
    access: { issuers: [tollgate] }
    limits: [{ name: cap, by: [{ header: x-region }], requests: 9, per: Hour }]`);
  t.same(policy.fallback.access, { ...authenticated, roles: ['staff'] });
  t.same(policy.fallback.limits, [{ name: 'a', plans: undefined, keys: ['user_id'] }]);
  t.match(policy.overrides, {
    name: 'shop/orders',
    limitDomain: 'policy/shop/orders',
    fallback: {
      access: { ...authenticated, issuers: ['tollgate'] },
      limits: [{ name: 'cap', plans: undefined, keys: ['header_x-region'] }],
    },
  });
  t.same(policy.headers, ['x-region'], 'the gateway must send what overrides count by');
});

t.test('limits of overrides that do not count all callers are a warning', async (t) => {
  const warn = (overrides: string) => compileWarnings(`${gateway}\n  overrides: ${overrides}`);
  const limits = (by: string) => `limits: [{ name: cap, by: [${by}], requests: 9, per: Hour }]`;
  t.match(warn(`{ ${limits('User')} }`), [
    /spec\.overrides\.limits: no limit counts callers without a credential, .* on all routes: add a limit by Address/,
  ]);
  t.same(warn(`{ ${limits('Address')} }`), []);
  t.same(warn(`{ access: { credentials: [User] }, ${limits('User')} }`), []);
  t.same(warn('{ access: { roles: [a] } }'), []);
});

t.test('overrides without access have no condition on callers', async (t) => {
  const { overrides } = compileValid(`${gateway}
  overrides: { limits: [{ name: cap, by: [Address], requests: 9, per: Hour }] }`);
  t.same(overrides?.fallback.access, { type: 'Public' });
});

t.test('defaults and overrides are for Gateways, once, with unique names of limits', async (t) => {
  const limit = '[{ name: a, by: [User], requests: 1, per: Hour }]';
  t.same(
    compileProblems(`
  hosts: [a.test]
  defaults: { access: { type: Public } }
  overrides: { limits: ${limit} }`),
    [
      'shop/orders: spec.defaults: holds for a Gateway only: targetRefs must be Gateways',
      'shop/orders: spec.overrides: holds for a Gateway only: targetRefs must be Gateways',
    ],
  );
  t.same(
    compileProblems(`${gateway}
  access: { roles: [a] }
  limits: ${limit}
  defaults: { access: { type: Public }, limits: ${limit.replace('name: a', 'name: b')} }`),
    [
      'shop/orders: spec.defaults.access: cannot be combined with access; remove either',
      'shop/orders: spec.defaults.limits: cannot be combined with limits; remove either',
    ],
  );
  t.same(
    compileProblems(`${gateway}
  limits: ${limit}
  overrides: { access: { type: Public, roles: [a] }, limits: ${limit.replace('}', ', only: true }')} }`),
    [
      "shop/orders: spec.overrides.limits[0].name: 'a' is the name of another limit: names must differ",
      'shop/orders: spec.overrides.access.roles: has no effect with type: Public; remove either',
      'shop/orders: spec.overrides.limits[0].only: has no effect: overrides hold for every request',
    ],
  );
});

/** Rules with 64 matches each, all of the same depth. */
function manyRules(count: number): string {
  const matches = (rule: number) =>
    Array.from({ length: 64 }, (_, index) => `{ path: { value: /v1/a/${rule}/${index} } }`).join(', ');
  return Array.from({ length: count / 64 }, (_, rule) => `    - { matches: [${matches(rule)}] }`).join('\n');
}

t.test('all rules together have a bounded number of matches', async (t) => {
  const spec = (count: number) => `  hosts: [a.test]\n  rules:\n${manyRules(count)}`;
  t.same(compileProblems(spec(1_024)), []);
  t.same(readProblems(manifestText(spec(1_088))), [
    '6:3 a.yaml: spec.rules: must have at most 1024 matches together, not 1088: use several policies, or a path prefix',
  ]);
});

t.test('regular expressions of all rules together have a bounded size', async (t) => {
  const match = (path: string) => `{ path: { type: RegularExpression, value: '/${path}' } }`;
  const spec = (...paths: readonly string[]) =>
    `\n  hosts: [a.test]\n  rules: [{ matches: [${paths.map(match).join(', ')}] }]`;
  compileValid(spec('a{1000}', 'b{1000}'));
  const problems = compileProblems(spec('a{1000}', 'b{1000}', 'c{100}', 'd{1'));
  t.match(problems, [
    /^shop\/orders: spec\.rules\[0\]\.matches\[2\]\.path\.value: makes .* larger than 2048 instructions/,
    /^shop\/orders: spec\.rules\[0\]\.matches\[3\]\.path\.value: makes .* larger/,
  ]);
});

t.test('a match never matches if an earlier one is for all of its paths', async (t) => {
  const path = (type: string, value: string) => `{ path: { type: ${type}, value: ${value} } }`;
  const isReported = (...paths: readonly string[]) =>
    compileProblems(`  hosts: [a.test]\n  rules: [{ matches: [${paths.join(', ')}] }]`).length > 0;
  const [exact, prefix] = [path('Exact', '/a'), path('PathPrefix', '/a')];
  for (const covered of [exact, prefix, path('Exact', '/a/'), path('PathPrefix', '/a/b/c')])
    t.ok(isReported(prefix, covered), covered);
  t.ok(isReported(exact, exact));
  t.ok(isReported(path('PathPrefix', '/'), path('RegularExpression', '/x.*')));
  for (const other of [prefix, path('Exact', '/a/'), path('Exact', '/a/b'), path('PathPrefix', '/b')])
    t.notOk(isReported(exact, other), other);
  t.notOk(isReported(prefix, path('PathPrefix', '/ab')), 'another segment');
  t.notOk(isReported(path('PathPrefix', '/a/b'), prefix));
  t.notOk(isReported(prefix, path('RegularExpression', '/a/.*')), 'not decided');
  t.notOk(isReported(prefix.replace(' }', ' }, methods: [GET]'), exact), 'a condition');
});

const resourceOf = (spec: string) => {
  const { access } = compileValid(spec).fallback;
  return access.type === 'Authenticated' ? { ...access.resource, audiences: access.audiences } : undefined;
};

t.test('a resource has the URL of the only host, else its own, and tokens must be for it', async (t) => {
  const wellKnown = '/.well-known/oauth-protected-resource';
  t.same(resourceOf('  hosts: [a.test]\n  access: { resource: { name: Tools, scopes: [read] } }'), {
    ...{ url: 'https://a.test', name: 'Tools', scopes: ['read'] },
    ...{ metadataPath: wellKnown, metadataUrl: `https://a.test${wellKnown}` },
    audiences: ['https://a.test', 'https://a.test/'],
  });
  const own = 'resource: { url: "https://b.test:8443/mcp" }';
  t.match(resourceOf(`  hosts: ["*.test"]\n  access: { ${own} }`), {
    metadataUrl: `https://b.test:8443${wellKnown}/mcp`,
    audiences: ['https://b.test:8443/mcp'],
  });
  const explicit = `  hosts: [a.test]\n  access: { audiences: ["urn:a"], ${own} }`;
  t.same(resourceOf(explicit)?.audiences, ['urn:a']);
  const { resources } = compileValid(`
  hosts: [a.test]
  rules: [{ matches: [{ path: { value: /mcp } }], access: { ${own} } }]`);
  t.same([...(resources?.keys() ?? [])], [`${wellKnown}/mcp`]);
});

t.test('a resource without a certain URL is rejected', async (t) => {
  const problem = (spec: string) => compileProblems(spec).join();
  const required = /access\.resource\.url: is required unless hosts is a single host/;
  for (const target of ['  hosts: [a.test, b.test]', '  hosts: ["*.test"]', gateway])
    t.match(problem(`${target}\n  access: { resource: { name: Tools } }`), required);
  const urls = {
    mcp: /must be an https or http URL/,
    'ftp://a.test': /must be an https or http URL/,
    'https://a.test?x': /must not have a query or a fragment/,
    'https://A.test/a/../b': /must be in its normal form: https:\/\/a\.test\/b/,
  };
  for (const [url, message] of Object.entries(urls))
    t.match(problem(`  hosts: [a.test]\n  access: { resource: { url: "${url}" } }`), message);
  t.match(
    problem('  hosts: [a.test]\n  access: { type: Public, resource: { name: Tools } }'),
    /access\.resource: has no effect with type: Public/,
  );
  t.match(
    problem(`${gateway}\n  overrides: { access: { resource: { url: "https://a.test" } } }`),
    /overrides\.access\.resource: belongs into the access of a route/,
  );
  t.match(
    problem(`
  hosts: [a.test]
  access: { resource: { name: Tools } }
  rules: [{ matches: [{ path: { value: /x } }], access: { resource: { name: Others } } }]`),
    /access\.resource: differs from another resource of the policy at https:\/\/a\.test/,
  );
});
