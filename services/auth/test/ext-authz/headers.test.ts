import type { Json } from '@tollgate/kit/json';
import t from 'tap';
import { identityMetadata } from '../../src/ext-authz/grpc.ts';
import { parseUserLimit } from '../../src/ext-authz/identity.ts';
import { identityHeaderNames, identityHeaders } from '../../src/ext-authz/identity-headers.ts';
import { callerIdentity } from '../helpers/caller.ts';

const ada = callerIdentity({
  ...{ role: 'editor', plan: 'pro', aal: 'aal2', limit: { requestsPerUnit: 42, unit: 'MINUTE' } },
});

t.test('headers identify the caller', (t) => {
  t.same(identityHeaders(ada, []), {
    set: {
      'x-auth-user-id': ada.userId,
      'x-auth-session-id': ada.sessionId,
      'x-auth-role': 'editor',
      'x-auth-plan': 'pro',
      'x-auth-aal': 'aal2',
      'x-auth-anonymous': 'false',
      'x-auth-kind': 'user',
      'x-auth-issuer': 'tollgate',
    },
    remove: ['x-auth-key-id', 'x-auth-client-id', 'x-auth-org-id', 'x-auth-org-role', 'x-auth-scope'],
  });
  t.end();
});

t.test('headers without a value are removed, whether or not the client sent them', (t) => {
  const program = { ...ada, kind: 'client', userId: undefined, sessionId: undefined, role: '' } as const;
  const { set, remove } = identityHeaders(program, []);
  const names = ['plan', 'aal', 'anonymous', 'kind', 'issuer'].map((name) => `x-auth-${name}`);
  t.same(Object.keys(set), names);
  t.same(
    remove,
    identityHeaderNames.filter((name) => !names.includes(name)),
  );
  t.same(identityHeaders(undefined, []), { set: {}, remove: [...identityHeaderNames] });
  t.end();
});

t.test('spoofed headers are removed in every spelling, and others are not', (t) => {
  const spoofed = [
    ...['x-user-id', 'x-user-name', 'x-auth-tenant', 'x-auth', 'x-user', 'x_auth_role', 'x-auth_role'],
    ...['x_user-id', 'x-auth-user_id', 'x-auth-request-email', 'x.auth.user.id', 'x-auth~role', 'x!user'],
  ];
  const unrelated = [
    'x-request-id',
    'user-agent',
    'x-authority',
    'x-users',
    'authorization',
    'my-x-auth-role',
  ];
  const { set, remove } = identityHeaders(ada, [...spoofed, ...unrelated, 'x-auth-role']);
  t.same(new Set(remove), new Set([...spoofed, ...identityHeaders(ada, []).remove]));
  t.equal(set['x-auth-role'], 'editor', 'the value replaces the one of the client');
  t.notOk(
    Object.keys(set).some((name) => remove.includes(name)),
    'a header that is set is not removed',
  );
  t.end();
});

t.test('values cannot split a header and can be decoded', (t) => {
  for (const role of ['a\r\nx-auth-role: admin', 'é', '日本', 'a b', '50%', '%41', '\0', 'a,b', '😀']) {
    const value = String(identityHeaders({ ...ada, role }, []).set['x-auth-role']);
    t.match(value, /^[!-~]+$/, JSON.stringify(role));
    t.equal(decodeURIComponent(value), role);
  }
  t.match(identityHeaders({ ...ada, role: '\ud800' }, []).set['x-auth-role'], '%EF%BF%BD');
  t.end();
});

t.test('dynamic metadata has the values unencoded', (t) => {
  t.same(identityMetadata({ ...ada, plan: 'prö' }), {
    user_id: ada.userId,
    session_id: ada.sessionId,
    role: 'editor',
    plan: 'prö',
    aal: 'aal2',
    anonymous: false,
    kind: 'user',
    issuer: 'tollgate',
    limit: { requests_per_unit: 42, unit: 'MINUTE' },
  });
  t.same(identityMetadata({ ...ada, userId: undefined, sessionId: undefined, role: '', limit: undefined }), {
    plan: 'pro',
    aal: 'aal2',
    anonymous: false,
    kind: 'user',
    issuer: 'tollgate',
  });
  t.same(identityMetadata(undefined), {});
  t.end();
});

t.test('app_metadata sets a limit for a user', (t) => {
  const limit = { requests_per_unit: 5, unit: 'minute' };
  const read = { ok: true, limit: { requestsPerUnit: 5, unit: 'MINUTE' } };
  t.same(parseUserLimit({ limit }), read);
  t.same(parseUserLimit({ rate_limit: limit }), read);
  t.same(parseUserLimit({ limit, rate_limit: { requests_per_unit: 6, unit: 'day' } }), read);
  for (const unit of ['second', 'Minute', 'HOUR', 'day', 'week', 'month', 'year'])
    t.match(parseUserLimit({ limit: { ...limit, unit } }), { limit: { unit: unit.toUpperCase() } });
  t.match(parseUserLimit({ limit: { ...limit, requests_per_unit: 4_294_967_295 } }), { ok: true });
  t.end();
});

t.test('a limit is optional', (t) => {
  for (const metadata of [{}, { limit: null }, { provider: 'email' }])
    t.same(parseUserLimit(metadata), { ok: true, limit: undefined });
  t.end();
});

t.test('an invalid limit is rejected with a reason', (t) => {
  const bad: readonly Json[] = [
    ...[5, 'unlimited', true, [], {}, { unit: 'minute' }, { requests_per_unit: 5 }],
    ...[0, -1, 1.5, '5', 4_294_967_296, 1e300, null].map((requests_per_unit) => ({
      requests_per_unit,
      unit: 'minute',
    })),
    ...['minutes', '', 7, null, 'toString'].map((unit) => ({ requests_per_unit: 5, unit })),
  ];
  for (const limit of bad)
    t.match(parseUserLimit({ limit }), { ok: false, reason: /./ }, JSON.stringify(limit));
  t.end();
});
