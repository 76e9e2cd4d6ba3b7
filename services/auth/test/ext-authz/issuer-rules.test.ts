import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import { parseRouteRules } from '@tollgate/policies/routes-file/parse';
import t from 'tap';
import { trustIssuers } from '../../src/ext-authz/issuer-rules.ts';

type Claims = Readonly<Record<string, unknown>>;

const valid = 'name: idp, issuer: "https://idp.example", audiences: [orders]';

/** The problems of a file as `line:column: message`. */
function problemsOf(text: string): string[] {
  const parsed = parseRouteRules(text);
  if (parsed.ok) return [];
  return parsed.problems.map(({ position, message }) => `${position?.line}:${position?.column}: ${message}`);
}

/** The caller of a token with these claims. */
function caller(more: string, claims: Claims, top = ''): CallerIdentity | string {
  const accepted = accept(more, claims, top);
  return accepted?.ok ? accepted.caller.identity : (accepted?.reason ?? 'no issuer');
}

function accept(more: string, claims: Claims, top = '') {
  const parsed = parseRouteRules(`${top}\nissuers: [{ ${valid}${more} }]`);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const [issuer] = trustIssuers(parsed.rules.issuers, { extAuthzDefaultPlan: 'free' });
  return issuer?.accept(claims);
}

t.test('a token that another issuer has bound to a key needs a proof', (t) => {
  t.match(accept('', { sub: 'ada', cnf: { jkt: 'key' } }), { caller: { thumbprint: 'key' } });
  t.match(accept('', { sub: 'ada' }), { caller: { thumbprint: undefined } });
  t.end();
});

t.test('without a mapping a caller has the usual claims', (t) => {
  t.same(caller('', { sub: 'ada', azp: 'web', scope: 'read write', plan: 'pro', role: 'admin' }), {
    ...{ kind: 'user', userId: 'idp|ada', sessionId: undefined, clientId: 'web', orgId: undefined },
    ...{ orgRole: undefined, role: '', plan: 'free', scope: 'read write', aal: 'aal1', isAnonymous: false },
    ...{ issuer: 'idp', audiences: [], claims: {}, limit: undefined, key: undefined },
  });
  t.match(caller('', { sub: 'ada', client_id: 'cli', scp: ['read', 'write'] }), {
    clientId: 'cli',
    scope: 'read write',
  });
  t.equal(caller('', {}), 'token names no user');
  t.equal(caller('', { sub: 'x'.repeat(256) }), 'token names no user');
  t.equal(caller('', { sub: 'a\nb' }), 'token names no user');
  t.end();
});

t.test('claims map attributes of the table and of the file', (t) => {
  const mapping =
    ', claims: { user_id: oid, plan: sub_plan, role: "realm.roles[0]", org_id: org.id, department: d }';
  const claims = {
    sub: 's',
    oid: 'o-1',
    sub_plan: 'pro',
    realm: { roles: ['admin'] },
    org: { id: 'acme' },
    d: 7,
  };
  t.match(caller(mapping, claims), {
    ...{ userId: 'idp|o-1', plan: 'pro', role: 'admin', orgId: 'acme', claims: { department: '7' } },
  });
  t.equal(caller(mapping, { sub: 's' }), 'token names no user', 'the mapped claim, and no other');
  t.match(caller(', prefix: none', { sub: 'ada' }), { userId: 'ada' });
  t.match(caller(', claims: { scope: permissions }', { sub: 'ada', scope: 'x' }), { scope: undefined });
  t.end();
});

t.test('kinds tell clients from users', (t) => {
  const kinds = `, kinds: { client: "gty == 'client-credentials'" }`;
  t.match(caller(kinds, { sub: 'x@clients', gty: 'client-credentials', azp: 'job' }), {
    ...{ kind: 'client', userId: undefined, clientId: 'job' },
  });
  t.match(caller(kinds, { sub: 'job', gty: 'client-credentials' }), { clientId: 'job' });
  t.match(caller(kinds, { sub: 'ada' }), { kind: 'user', userId: 'idp|ada' });
  const both = `, kinds: { client: "gty == 'cc'", user: "email != ''" }`;
  t.match(caller(both, { sub: 'ada', email: 'a@example.com' }), { kind: 'user' });
  t.equal(caller(both, { sub: 'ada' }), 'token is of no kind of its issuer');
  t.end();
});

t.test('every problem of issuers is reported with its position', (t) => {
  t.same(
    problemsOf(`issuers:
  - { name: Bad Name, issuer: "https://a.example", audiences: [x] }
  - { name: tollgate, issuer: "https://b.example", audiences: [x] }
  - { issuer: "https://c.example" }
  - { name: d, issuer: "not a URL", audiences: [x], algorithms: [HS256, none, RS256] }
  - { name: e, audiences: [x], prefix: never }
  - { name: f, issuer: "https://f.example", audiences: [x], claims: { session_id: sid, limit: l, Upper: u, plan: "a..b" } }
  - { name: g, issuer: "https://f.example", audiences: [x], kinds: { client: "a =" } }
  - { name: f, kubernetes: true, jwks_uri: "https://h.example/jwks" }
  - { name: i, issuer: "https://i.example", audiences: [x], introspection: { endpoint: "ftp://i", cache: 1d } }
`),
    [
      '2:5: Bad Name is not a name of an issuer: use lower case letters, digits and -, at most 63',
      '3:5: tollgate is not a name of an issuer: use lower case letters, digits and -, at most 63',
      '4:5: an issuer requires a name',
      '4:5: an issuer requires audiences: tokens for other services must not be accepted',
      '5:24: expected an https URL, found not a URL',
      '5:66: expected one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, found HS256',
      '5:73: expected one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, found none',
      '6:5: an issuer requires issuer, the value of iss in its tokens',
      '6:40: expected one of name, none, found never',
      '7:71: session_id cannot be set by claims: only user_id, role, plan, client_id, org_id, org_role, scope and other names can',
      '7:88: limit cannot be set by claims: only user_id, role, plan, client_id, org_id, org_role, scope and other names can',
      '7:98: Upper is not a name: use lower case letters, digits and _, at most 63',
      '7:114: a..b is not a claim: it cannot be read from ..b',
      '8:5: duplicate issuer https://f.example',
      '8:78: a = is not a condition: it cannot be read from  =',
      '9:5: duplicate name f',
      '9:44: jwks_uri has no effect with kubernetes: true; remove it',
      '10:76: introspection requires endpoint and client: { id, secret_file }',
      '10:88: expected an https URL, found ftp://i',
      '10:106: cache must be a duration from 0s to 10m',
    ],
  );
  const many = Array.from(
    { length: 33 },
    (_, n) => `{ name: i${n}, issuer: "https://${n}.example", audiences: [x] }`,
  );
  t.match(problemsOf(`issuers: [${many.join(', ')}]`), [/too many issuers: 33, the limit is 32/]);
  const opaque = 'introspection: { endpoint: "https://a/i", client: { id: c, secret_file: /s } }';
  const two = `issuers: [{ ${valid}, ${opaque} }, { name: b, issuer: "https://b", audiences: [x], ${opaque} }]`;
  t.match(problemsOf(two), [/only one issuer can have introspection/]);
  t.end();
});

t.test('claims of own tokens cannot be what users write', (t) => {
  t.same(problemsOf('claims: { department: user_metadata.department, role: role, user_id: sub }'), [
    '1:23: users can change their user_metadata: use app_metadata',
    '1:49: role cannot be set by claims: only plan, client_id, org_id, org_role, scope and other names can',
    '1:61: user_id cannot be set by claims: only plan, client_id, org_id, org_role, scope and other names can',
  ]);
  const many = Array.from({ length: 17 }, (_, n) => `a${n}: x`).join(', ');
  t.match(problemsOf(`claims: { ${many} }`), [/too many attributes of your own: 17, the limit is 16/]);
  t.match(problemsOf('claims: { plan: { from: token } }'), [/claim is missing/]);
  t.match(problemsOf('claims: { plan: { claim: plan, from: stars } }'), [/expected one of stored, token/]);
  t.end();
});

t.test('a limit by an attribute that nothing sets is a problem', (t) => {
  const unset = (name: string) => [`1:9: no caller has ${name}: set it by claims`];
  for (const name of ['org_id', 'org_role', 'client_id', 'scope'])
    t.same(problemsOf(`limit: [[${name}]]`), unset(name));
  t.match(parseRouteRules('limit: [[client_id], [org_id], [scope]]', { hasClients: true }), { ok: true });
  t.match(problemsOf('limit: [[department]]'), [/expected one of/]);
  t.same(problemsOf('{limit: [[org_id, department]], claims: { org_id: o, department: d }}'), []);
  t.same(problemsOf(`{limit: [[issuer, client_id]], issuers: [{ ${valid} }]}`), []);
  t.same(problemsOf(`{limit: [[department]], issuers: [{ ${valid}, claims: { department: d } }]}`), []);
  t.end();
});
