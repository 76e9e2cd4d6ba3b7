import t from 'tap';
import { identityHeaderNames, identityHeaders, identityMetadata } from '../../../src/ext-authz/headers.ts';
import type { CallerIdentity } from '../../../src/ext-authz/identity.ts';

const ada: CallerIdentity = {
  userId: '8fba2b4c-1a5b-4bd0-9c6b-2c8f8a3a1111',
  sessionId: '11111111-2222-4333-8444-555555555555',
  role: 'editor',
  plan: 'pro',
  aal: 'aal2',
  isAnonymous: false,
  limit: { requestsPerUnit: 42, unit: 'MINUTE' },
};

t.test('upstreams are told who calls', (t) => {
  t.same(identityHeaders(ada, []), {
    set: {
      'x-auth-user-id': ada.userId,
      'x-auth-session-id': ada.sessionId,
      'x-auth-role': 'editor',
      'x-auth-plan': 'pro',
      'x-auth-aal': 'aal2',
      'x-auth-anonymous': 'false',
    },
    remove: [],
  });
  t.end();
});

t.test('what there is not is removed, whether or not a proxy tells of it', (t) => {
  const program = { ...ada, userId: undefined, sessionId: undefined, role: '' };
  const { set, remove } = identityHeaders(program, []);
  t.same(Object.keys(set), ['x-auth-plan', 'x-auth-aal', 'x-auth-anonymous']);
  t.same(remove, ['x-auth-user-id', 'x-auth-session-id', 'x-auth-role']);
  t.same(identityHeaders(undefined, []), { set: {}, remove: [...identityHeaderNames] });
  t.end();
});

t.test('smuggled headers are removed in every spelling, and others are not', (t) => {
  const smuggled = [
    ...['x-user-id', 'x-user-name', 'x-auth-tenant', 'x-auth', 'x-user', 'x_auth_role', 'x-auth_role'],
    ...['x_user-id', 'x-auth-user_id', 'x-auth-request-email', 'x.auth.user.id', 'x-auth~role', 'x!user'],
  ];
  const innocent = [
    'x-request-id',
    'user-agent',
    'x-authority',
    'x-users',
    'authorization',
    'my-x-auth-role',
  ];
  const { set, remove } = identityHeaders(ada, [...smuggled, ...innocent, 'x-auth-role']);
  t.same(new Set(remove), new Set(smuggled));
  t.equal(set['x-auth-role'], 'editor', 'what is set replaces what was sent');
  t.notOk(
    Object.keys(set).some((name) => remove.includes(name)),
    'Envoy removes last',
  );
  t.end();
});

t.test('no value splits a header, and each can be read back', (t) => {
  for (const role of ['a\r\nx-auth-role: admin', 'é', '日本', 'a b', '50%', '%41', '\0', 'a,b', '😀']) {
    const value = String(identityHeaders({ ...ada, role }, []).set['x-auth-role']);
    t.match(value, /^[!-~]+$/, JSON.stringify(role));
    t.equal(decodeURIComponent(value), role);
  }
  t.match(identityHeaders({ ...ada, role: '\ud800' }, []).set['x-auth-role'], '%EF%BF%BD');
  t.end();
});

t.test('rate limits see the values as they are', (t) => {
  t.same(identityMetadata({ ...ada, plan: 'prö' }), {
    user_id: ada.userId,
    session_id: ada.sessionId,
    role: 'editor',
    plan: 'prö',
    aal: 'aal2',
    anonymous: false,
    limit: { requests_per_unit: 42, unit: 'MINUTE' },
  });
  t.same(identityMetadata({ ...ada, userId: undefined, sessionId: undefined, role: '', limit: undefined }), {
    plan: 'pro',
    aal: 'aal2',
    anonymous: false,
  });
  t.same(identityMetadata(undefined), {});
  t.end();
});
