import t from 'tap';
import { adminToken } from '../../helpers/admin.ts';
import { signUp, startAuthServer } from '../../helpers/auth-server.ts';
import { startMailingServer } from '../../helpers/mail-server.ts';

const grabbed = {
  id: '00000000-0000-4000-8000-000000000001',
  role: 'service_role',
  aud: 'admin',
  is_super_admin: true,
  is_anonymous: true,
  is_sso_user: true,
  email_confirmed_at: '2020-01-01T00:00:00Z',
  confirmed_at: '2020-01-01T00:00:00Z',
  banned_until: null,
  app_metadata: { roles: ['admin'] },
  raw_app_meta_data: { roles: ['admin'] },
  identities: [],
  email_confirm: true,
};

t.test('sign-up ignores unknown members', async (t) => {
  const { server } = await startMailingServer(t);
  const answer = await server.call('POST', '/signup', {
    body: { ...grabbed, email: 'eve@example.com', password: 'correct horse', data: { role: 'service_role' } },
  });
  t.equal(answer.status, 200);
  t.not(answer.body.id, grabbed.id);
  t.match(answer.body, {
    role: 'authenticated',
    aud: '',
    is_anonymous: false,
    app_metadata: { provider: 'email', providers: ['email'] },
    user_metadata: { role: 'service_role' },
    identities: [{ provider: 'email' }],
  });
  t.notOk('email_confirmed_at' in answer.body);
  t.notMatch(answer.text, /"roles"/);
});

t.test('users cannot elevate their own privileges', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token, userId } = await signUp(server);
  t.match(await server.call('PUT', '/user', { token, body: { app_metadata: { roles: ['admin'] } } }), {
    status: 403,
    body: { error_code: 'not_admin' },
  });
  const { app_metadata, ...rest } = grabbed;
  t.ok(app_metadata);
  const body = { ...rest, data: { role: 'service_role', app_metadata: { roles: ['admin'] } } };
  const answer = await server.call('PUT', '/user', { token, body });
  t.match(answer, {
    status: 200,
    body: { id: userId, role: 'authenticated', aud: '', app_metadata: { provider: 'email' } },
  });
  const admin = await server.call('GET', `/admin/users/${userId}`, { token: adminToken() });
  t.same(admin.body.app_metadata, { provider: 'email', providers: ['email'] });
});

t.test('metadata cannot pollute prototypes', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token } = await signUp(server);
  for (const data of [
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"a":{"__proto__":{"polluted":1}}}',
    '{"\\u005f_proto__":{"polluted":1}}',
  ]) {
    const answer = await server.call('PUT', '/user', { token, body: `{"data":${data}}` });
    t.equal(answer.status, 200, data);
    t.equal(({} as Record<string, unknown>).polluted, undefined);
    t.notMatch(answer.text, /polluted/, data);
  }
  const whole = await server.call('PUT', '/user', {
    token,
    body: '{"__proto__":{"email":"eve@example.com"}}',
  });
  t.match(whole, { status: 200, body: { email: 'ada@example.com' } });
});

t.test('anonymous sign-up cannot set a role', async (t) => {
  const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const { email_confirm, ...body } = grabbed;
  t.ok(email_confirm);
  t.match(await server.call('POST', '/signup', { body }), {
    status: 200,
    body: { user: { role: 'authenticated', is_anonymous: true, email: '' } },
  });
});
