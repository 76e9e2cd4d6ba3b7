import { createHash } from 'node:crypto';
import t from 'tap';
import { Value } from 'typebox/value';
import { components } from '../../src/http/open-api-components.ts';
import { adminToken } from '../helpers/admin.ts';
import { type Answer, type AuthServer, startAuthServer } from '../helpers/auth-server.ts';

const token = adminToken();
const email = 'ada@example.com';

function generate(server: AuthServer, body: unknown, headers = {}) {
  return server.call('POST', '/admin/generate_link', { token, body, headers });
}

t.test('invalid link requests name the problem', async (t) => {
  const server = await startAuthServer(t, { MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' });
  await server.call('POST', '/admin/users', {
    token,
    body: { email: 'bob@example.com', email_confirm: true },
  });
  const refused = async (body: unknown, message: string) =>
    t.match(await generate(server, body), {
      status: 400,
      body: { error_code: 'validation_failed', msg: message },
    });
  await refused({ type: 'signup', email: 'ada' }, 'Unable to validate email address: invalid format');
  await refused({ type: 'phone', email }, 'Invalid email action link type requested: phone');
  await refused({ email }, 'Invalid email action link type requested: ');
  await refused({ type: 'signup', email }, 'Signup requires a valid password');
  await refused(
    { type: 'email_change_current', email: 'bob@example.com', new_email: 'x@example.com' },
    'Enable secure email change to generate link for current email',
  );
  t.match(await generate(server, { type: 'signup', email, password: 'short' }), {
    status: 422,
    body: { error_code: 'weak_password', weak_password: { reasons: ['length'] } },
  });
  t.match(await generate(server, { type: 'recovery', email }), {
    status: 404,
    body: { error_code: 'user_not_found', msg: 'User with this email not found' },
  });
  t.match(
    await generate(server, {
      type: 'email_change_new',
      email: 'bob@example.com',
      new_email: 'bob@example.com',
    }),
    { status: 422, body: { error_code: 'email_exists' } },
  );
});

t.test('link target must be in the allow list', async (t) => {
  const server = await startAuthServer(t, { URI_ALLOW_LIST: 'https://app.example.net/**' });
  const wanted = { type: 'magiclink', email };
  const allowed = 'https://app.example.net/x';
  t.match(await generate(server, { ...wanted, redirect_to: allowed }), { body: { redirect_to: allowed } });
  t.match(await generate(server, wanted, { redirect_to: allowed }), { body: { redirect_to: allowed } });
  t.match(await generate(server, { ...wanted, redirect_to: 'https://evil.example.org' }), {
    body: { redirect_to: 'https://example.com' },
  });
});

t.test('metadata of a new user is stored as sent', async (t) => {
  const server = await startAuthServer(t, { MAILER_AUTOCONFIRM: 'false' });
  const data = { name: 'Ada', email: 'not@the.contact', nested: { a: [1, null] } };
  for (const type of ['signup', 'magiclink', 'invite']) {
    const wanted = {
      type,
      email: `${type}@example.com`,
      ...(type === 'signup' && { password: 'correct horse' }),
    };
    t.same((await generate(server, { ...wanted, data })).body.user_metadata, data, type);
    const email = `${type}-none@example.com`;
    t.same((await generate(server, { ...wanted, email })).body.user_metadata, {}, `${type} without metadata`);
  }
});

t.test('links are not rate limited, and a new one replaces the last', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_EMAIL_SENT: '0' });
  await server.call('POST', '/admin/users', { token, body: { email, email_confirm: true } });
  const made: Answer[] = [];
  for (let i = 0; i < 3; i++) made.push(await generate(server, { type: 'recovery', email }));
  t.same(
    made.map(({ status }) => status),
    [200, 200, 200],
  );
  t.same([...Value.Errors(components.ActionLink, made[2]?.body)], []);
  t.match(made[2]?.body, { email, recovery_sent_at: /Z$/, verification_type: 'recovery' }, 'with the user');
  const verify = (index: number) =>
    server.call('POST', '/verify', {
      body: { type: 'recovery', token_hash: made[index]?.body.hashed_token },
    });
  t.match(await verify(0), { status: 403, body: { error_code: 'otp_expired' } });
  t.equal((await verify(2)).status, 200);
});

t.test('sign-up link replaces the password of an unconfirmed sign-up', async (t) => {
  const server = await startAuthServer(t, { MAILER_AUTOCONFIRM: 'false' });
  await server.call('POST', '/admin/users', { token, body: { email, password: 'of an attacker' } });
  const link = await generate(server, { type: 'signup', email, password: 'correct horse' });
  await server.call('POST', '/verify', { body: { type: 'signup', token_hash: link.body.hashed_token } });
  const signIn = (password: string) =>
    server.call('POST', '/token?grant_type=password', { body: { email, password } });
  t.equal((await signIn('of an attacker')).status, 400);
  t.equal((await signIn('correct horse')).status, 200);
});

t.test('administrator can rename a factor', async (t) => {
  const server = await startAuthServer(t);
  const signedUp = await server.call('POST', '/signup', { body: { email, password: 'correct horse' } });
  const own = String(signedUp.body.access_token);
  const userId = (await server.call('GET', '/user', { token: own })).body.id;
  const enroll = async (name: string) => {
    const body = { factor_type: 'totp', friendly_name: name };
    return (await server.call('POST', '/factors', { token: own, body })).body.id;
  };
  const [id] = [await enroll('a'), await enroll('b')];
  const path = `/admin/users/${userId}/factors`;
  const rename = (name: string) =>
    server.call('PUT', `${path}/${id}`, { token, body: { friendly_name: name } });
  t.match(await rename('c'), { status: 200, body: { id, friendly_name: 'c', factor_type: 'totp' } });
  t.match(await rename('b'), { status: 422, body: { error_code: 'mfa_factor_name_conflict' } });
  t.match(await server.call('DELETE', `${path}/${userId}`, { token }), {
    status: 404,
    body: { error_code: 'mfa_factor_not_found' },
  });
  t.match(await server.call('GET', `/admin/users/${id}/factors`, { token }), { status: 404 });
});

t.test(
  'link cannot be derived from email and a guessed code, as links do not count as guesses',
  async (t) => {
    const server = await startAuthServer(t);
    const { body } = await generate(server, { type: 'magiclink', email });
    const guess = createHash('sha224')
      .update(email + String(body.email_otp))
      .digest('hex');
    t.match(
      await server.call('POST', '/verify', { body: { type: body.verification_type, token_hash: guess } }),
      {
        status: 403,
        body: { error_code: 'otp_expired' },
      },
    );
    const link = { type: body.verification_type, token_hash: body.hashed_token };
    t.match(link.token_hash, /^[0-9a-f]{56}$/);
    t.equal((await server.call('POST', '/verify', { body: link })).status, 200);
  },
);
