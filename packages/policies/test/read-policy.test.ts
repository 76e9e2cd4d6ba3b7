import t from 'tap';
import { accessFields, type Fields, specFields } from '../src/definition/fields.ts';
import { readPolicy } from '../src/read/read-policy.ts';
import { manifestText, readProblems, readSpec } from './helpers/policies.ts';

t.test('the common policy is read as it is written', async (t) => {
  const { namespace, name, spec } = readSpec(`
  hosts: [api.example.com, "*.shop.example.com"]
  limits:
    - name: per-user
      by: [User]
      requests: 60
      per: Minute
      plans: { pro: { requests: 600 }, enterprise: { unlimited: true } }`);
  t.same([namespace, name], ['shop', 'orders']);
  t.same(spec, {
    hosts: ['api.example.com', '*.shop.example.com'],
    limits: [
      {
        name: 'per-user',
        by: ['User'],
        requests: 60,
        per: 'Minute',
        plans: new Map([
          ['pro', { requests: 600 }],
          ['enterprise', { unlimited: true }],
        ]),
      },
    ],
  });
});

t.test('every field of every part is read', async (t) => {
  const { spec } = readSpec(`
  targetRefs:
    - { group: gateway.networking.k8s.io, kind: HTTPRoute, name: orders, sectionName: export }
  hosts: ["*"]
  access: &access
    { type: Authenticated, roles: [admin], scopes: [orders.read], plans: [pro], assurance: AAL2,
      anonymousUsers: true, browser: Redirect, credentials: [User, ApiKey, Client], issuers: [keycloak],
      audiences: ["https://api.example.com"],
      resource: { url: "https://api.example.com", name: Orders, scopes: [orders.read] } }
  rules:
    - matches:
        - path: { type: Exact, value: /orders/export }
          methods: [GET]
          headers: [{ type: RegularExpression, name: x-region, value: eu-.* }]
          queryParams: [{ type: Exact, name: format, value: csv }]
      access: *access
      limits: []
  limits: &limits
    - { name: a, only: true, by: [User, { header: x-region }, { claim: department }], requests: 1, per: Hour, period: 90s, unlimited: false,
        plans: { pro: { requests: 2, unlimited: false } }, algorithm: TokenBucket, burst: 3, timeZone: Europe/Berlin,
        lease: 5%, onStoreFailure: Deny, mode: Shadow }
  defaults: { access: *access, limits: *limits }
  overrides: { access: *access, limits: *limits }`);
  t.same(missingFields(specFields, spec), [], 'none is missing');
  t.same(spec.rules?.[0]?.limits, [], 'an empty list has a meaning');
  t.same(spec.limits?.[0]?.by, ['User', { header: 'x-region' }, { claim: 'department' }]);
});

/** Paths of fields of the table that a value lacks. */
function missingFields(fields: Fields, value: unknown, path = 'spec'): string[] {
  // Values are what the table describes.
  const part = value as Readonly<Record<string, unknown>>;
  return Object.entries(fields).flatMap(([name, field]) => {
    const own = `${path}.${name}`;
    const found = part[name];
    if (found === undefined) return [own];
    if (field.kind === 'part') return missingFields(field.fields, found, own);
    if (field.kind === 'parts') return missingFields(field.fields, (found as unknown[])[0], own);
    if (field.kind === 'parts by name')
      return missingFields(field.fields, [...(found as Map<string, unknown>).values()][0], own);
    return [];
  });
}

t.test('a problem has the path of the field, and the text has its position', async (t) => {
  const text = manifestText('  hosts: [api.example.com]\n  access:\n    role: [admin]');
  t.same(readProblems(text), ['7:5 a.yaml: spec.access.role: unknown field (did you mean roles?)']);
});

t.test('misspelled fields get a hint where they belong', async (t) => {
  const hints: readonly (readonly [spec: string, problem: string])[] = [
    ['  host: [a.test]', 'spec.host: unknown field (did you mean hosts?)'],
    ['  target_refs: []', 'spec.target_refs: unknown field (it is spelled targetRefs)'],
    ['  roles: [admin]', 'spec.roles: unknown field (it belongs in access)'],
    ['  requests: 5', 'spec.requests: unknown field (it belongs in limits)'],
    [
      '  limits: [{ name: a, by: [User], requestsPerUnit: 5 }]',
      'spec.limits[0].requestsPerUnit: unknown field (did you mean requests?)',
    ],
    [
      '  limits: [{ name: a, by: [User], unit: Hour }]',
      'spec.limits[0].unit: unknown field (did you mean per?)',
    ],
    ['  access: { assurances: AAL2 }', 'spec.access.assurances: unknown field (did you mean assurance?)'],
    ['  access: { aal: AAL2 }', 'spec.access.aal: unknown field (did you mean assurance?)'],
    [
      '  rules: [{ matches: [{ paths: /a }] }]',
      'spec.rules[0].matches[0].paths: unknown field (did you mean path?)',
    ],
    ['  rules: [{ path: /a, matches: [{}] }]', 'spec.rules[0].path: unknown field (it belongs in matches)'],
  ];
  for (const [spec, problem] of hints) t.same(problemsOf(spec), [`a.yaml: ${problem}`], spec);
});

t.test('values outside of their bounds are problems', async (t) => {
  const invalid: readonly (readonly [spec: string, problem: string | RegExp])[] = [
    ['  hosts: []', 'spec.hosts: must not be empty: leave it out instead'],
    ['  hosts: [A.test]', /spec\.hosts\[0\]: 'A\.test' is not allowed: must be a host name in lower case/],
    ['  hosts: ["a.test:443"]', /spec\.hosts\[0\]: 'a\.test:443' is not allowed/],
    ['  hosts: ["a.*.test"]', /spec\.hosts\[0\]: /],
    ['  hosts: [a.test, a.test]', "spec.hosts[1]: 'a.test' is listed twice"],
    ['  hosts: a.test', "spec.hosts: must be a list, not 'a.test'"],
    [
      '  access: { type: public }',
      "spec.access.type: must be one of Public, Authenticated, Denied, not 'public'",
    ],
    ['  access: { roles: [1] }', 'spec.access.roles[0]: must be text, not 1: put it in quotes'],
    ['  access: { scopes: ["a b"] }', /spec\.access\.scopes\[0\]: 'a b' is not allowed: must be a scope/],
    ['  access: { anonymousUsers: "true" }', /spec\.access\.anonymousUsers: must be true or false/],
    [
      '  access: { credentials: [Robot] }',
      "spec.access.credentials[0]: must be one of User, ApiKey, Client, not 'Robot'",
    ],
    ['  rules: [{}]', 'spec.rules[0].matches: is required'],
    ['  rules: [5]', 'spec.rules[0]: must be a mapping, not 5'],
    ['  limits: [{ by: [User] }]', 'spec.limits[0].name: is required'],
    ['  limits: [{ name: a }]', 'spec.limits[0].by: is required'],
    ['  limits: [{ name: a, by: [] }]', 'spec.limits[0].by: must not be empty: leave it out instead'],
    [
      '  limits: [{ name: a, by: [user] }]',
      /spec\.limits\[0\]\.by\[0\]: must be one of User, .*, { header: … } or { claim: … }, not 'user'/,
    ],
    [
      '  limits: [{ name: a, by: [{ claim: Department }] }]',
      /spec\.limits\[0\]\.by\[0\]\.claim: .*the name of an attribute/,
    ],
    [
      '  limits: [{ name: a, by: [{ header: X-A }] }]',
      /spec\.limits\[0\]\.by\[0\]\.header: .* in lower case/,
    ],
    ['  limits: [{ name: a, by: [{ cookie: x }] }]', /spec\.limits\[0\]\.by\[0\]\.cookie: unknown field/],
    [
      '  limits: [{ name: a, by: [User], requests: -1 }]',
      /spec\.limits\[0\]\.requests: must be a whole number from 0/,
    ],
    [
      '  limits: [{ name: a, by: [User], plans: { "a*": { requests: 1 } } }]',
      /spec\.limits\[0\]\.plans\.a\*: 'a\*' is not allowed/,
    ],
    [
      '  limits: [{ name: a, by: [User], plans: { pro: 5 } }]',
      'spec.limits[0].plans.pro: must be a mapping, not 5',
    ],
    [
      '  targetRefs: [{ group: apps, kind: HTTPRoute, name: a }]',
      /spec\.targetRefs\[0\]\.group: must be one of/,
    ],
  ];
  for (const [spec, expected] of invalid) {
    const problems = problemsOf(spec);
    t.match(problems[0], typeof expected === 'string' ? `a.yaml: ${expected}` : expected, spec);
  }
});

/** Without positions. */
const problemsOf = (spec: string) =>
  readProblems(manifestText(spec)).map((line) => line.replace(/^\d+:\d+ /, ''));

t.test('other manifests are problems', async (t) => {
  const problem = (manifest: unknown) => {
    const result = readPolicy(manifest, 'a');
    return result.ok ? undefined : result.problems.map(({ path, message }) => `${path}: ${message}`);
  };
  const ours = { apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy', metadata: { name: 'a' } };
  t.same(problem([]), [': expected an AccessPolicy manifest, not a list']);
  t.same(problem({ ...ours, kind: 'Deployment' }), ["kind: must be AccessPolicy, not 'Deployment'"]);
  t.same(problem({ ...ours, apiVersion: undefined }), [
    'apiVersion: must be policy.tollgate.dev/v1alpha1, not nothing',
  ]);
  t.same(problem(ours), ['spec: is required']);
  t.same(problem({ ...ours, metadata: {}, spec: {} }), ['metadata.name: is required']);
  t.same(problem({ ...ours, specs: {}, spec: {} }), ['specs: unknown field']);
  t.equal(problem({ ...ours, spec: {} }), undefined, 'compiling finds what is missing');
});

t.test('every field of the table has a description', async (t) => {
  const check = (fields: Fields, path: string): void => {
    for (const [name, field] of Object.entries(fields)) {
      t.match(field.description, /[.)]$/, `${path}.${name}`);
      if ('fields' in field) check(field.fields, `${path}.${name}`);
    }
  };
  check(specFields, 'spec');
  check(accessFields, 'access');
});
