import { hash as argon2Hash } from '@node-rs/argon2';
import { hash as bcryptHash } from '@node-rs/bcrypt';
import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { startMailingServer } from '../helpers/mail-server.ts';
import { allowUnreadableRows } from '../helpers/test-database.ts';

const token = adminToken();
const id = '11111111-2222-4333-8444-555555555555';

function create(server: AuthServer, body: unknown, path = '/admin/users') {
  return server.call('POST', path, { token, body });
}

async function tableText({ databaseUrl }: AuthServer, tables: readonly string[]): Promise<string> {
  const sql = postgres(databaseUrl, { max: 1 });
  const rows = await Promise.all(tables.map((table) => sql`select * from auth.${sql(table)}`));
  await sql.end();
  return JSON.stringify(rows);
}

t.test('endpoints are for administrators only', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  const paths: [string, string][] = [
    ['GET', '/admin/users'],
    ['POST', '/admin/users'],
    ['GET', `/admin/users/${id}`],
    ['PUT', `/admin/users/${id}`],
    ['DELETE', `/admin/users/${id}`],
    ['GET', `/admin/users/${id}/factors`],
    ['DELETE', `/admin/users/${id}/factors/${id}`],
    ['POST', '/admin/generate_link'],
    ['GET', '/admin/audit'],
    ['POST', '/invite'],
  ];
  for (const [method, path] of paths) {
    const body = method === 'POST' || method === 'PUT' ? { email: 'eve@example.com' } : undefined;
    t.match(await server.call(method, path, { body }), {
      status: 401,
      body: { error_code: 'no_authorization' },
    });
    t.match(await server.call(method, path, { body, token: accessToken }), {
      status: 403,
      body: { error_code: 'not_admin', msg: 'User not allowed' },
    });
  }
});

t.test('invalid requests name the problem', async (t) => {
  const server = await startAuthServer(t);
  const refused = async (body: unknown, message: string | RegExp) =>
    t.match(await create(server, body), {
      status: 400,
      body: { error_code: 'validation_failed', msg: message },
    });
  await refused({}, 'Cannot create a user without either an email or phone');
  await refused({ email: 'ada' }, 'Unable to validate email address: invalid format');
  await refused({ phone: 'ada' }, 'Invalid phone number format (E.164 required)');
  const email = 'ada@example.com';
  await refused({ email, id: 'x' }, 'ID must conform to the uuid v4 format');
  await refused({ email, id: '00000000-0000-0000-0000-000000000000' }, 'ID cannot be a nil uuid');
  await refused({ email, ban_duration: 'a while' }, /^invalid format for ban duration: /);
  await refused({ email, password: 'ä'.repeat(37) }, 'Password cannot be longer than 72 characters');
  await refused(
    { email, password: 'a', password_hash: '$2b$' },
    'Only a password or a password hash should be provided',
  );
  await refused({ email, role: 'r'.repeat(256) }, /^role is longer/);
  t.match(await create(server, { email, email_confirm: 'yes' }), {
    status: 400,
    body: { error_code: 'bad_json' },
  });
});

t.test('contacts are unconfirmed by default, and metadata is stored as sent', async (t) => {
  const server = await startAuthServer(t);
  const { body } = await create(server, {
    email: 'Ada@Example.com',
    phone: '+44 20 7946 0000',
    phone_confirm: true,
    user_metadata: { a: null, b: { c: null } },
    ban_duration: '24h',
  });
  t.match(body, {
    email: 'ada@example.com',
    phone: '442079460000',
    phone_confirmed_at: new Date(server.clock.nowMs()).toISOString(),
    banned_until: new Date(server.clock.nowMs() + 24 * 3_600_000).toISOString(),
    app_metadata: { provider: 'email', providers: ['email', 'phone'] },
    identities: [{ provider: 'email' }, { provider: 'phone' }],
  });
  t.same(body.user_metadata, { a: null, b: { c: null }, phone_verified: true });
  t.notOk('email_confirmed_at' in body);
});

t.test('id can be set in the path or the body, once', async (t) => {
  const server = await startAuthServer(t);
  const path = `/admin/users/${id.toUpperCase()}`;
  t.match(await create(server, { email: 'a@example.com' }, path), { status: 200, body: { id } });
  t.match(await create(server, { email: 'b@example.com', id }), {
    body: { error_code: 'user_already_exists', msg: 'A user with this id already exists' },
  });
  t.match(await create(server, { phone: '4912345', id: '22222222-2222-4333-8444-555555555555' }), {
    status: 200,
  });
  t.match(await create(server, { phone: '+4912345' }), { status: 422, body: { error_code: 'phone_exists' } });
  t.match(await create(server, { email: 'c@example.com' }, '/admin/users/me'), {
    status: 404,
    body: { error_code: 'validation_failed', msg: 'user_id must be an UUID' },
  });
});

t.test('one of several concurrent requests creates the user, the others get a conflict', async (t) => {
  const server = await startAuthServer(t);
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => create(server, { email: 'ada@example.com' })),
  );
  t.same(answers.map(({ status }) => status).sort(), [200, ...Array(9).fill(422)]);
});

t.test('imported password hashes work for sign-in and are then replaced', async (t) => {
  const server = await startAuthServer(t);
  const password = 'user1password';
  const hashes = {
    bcrypt: await bcryptHash(password, 4),
    argon2i: await argon2Hash(password, { algorithm: 1, memoryCost: 1024, timeCost: 2, parallelism: 1 }),
    argon2id: await argon2Hash(password, { algorithm: 2, memoryCost: 1024, timeCost: 2, parallelism: 1 }),
    // Example from Firebase's documentation.
    firebase:
      '$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  };
  for (const [name, password_hash] of Object.entries(hashes)) {
    const email = `${name}@example.com`;
    t.equal((await create(server, { email, email_confirm: true, password_hash })).status, 200, name);
    const signIn = (given: string) =>
      server.call('POST', '/token?grant_type=password', { body: { email, password: given } });
    t.equal((await signIn('wrong')).status, 400, name);
    t.equal((await signIn(password)).status, 200, name);
    t.equal((await signIn(password)).status, 200, `${name}, replaced`);
  }
  const tooDear = '$argon2id$v=19$m=2097152,t=2,p=1$c29tZXNhbHQ$aGFzaGhhc2hoYXNoaGFzaA';
  for (const password_hash of [
    'plain',
    '$2b$03$short',
    '$argon2d$v=19$m=1,t=1,p=1$YQ$YQ',
    tooDear,
    hashes.firebase.replace('n=14', 'n=30'),
  ])
    t.match(await create(server, { email: 'x@example.com', password_hash }), { status: 400 }, password_hash);
});

t.test('update with a contact of another user changes nothing', async (t) => {
  const server = await startAuthServer(t);
  await create(server, { email: 'a@example.com', phone: '491' });
  await create(server, { email: 'b@example.com', id });
  const put = (body: unknown) => server.call('PUT', `/admin/users/${id}`, { token, body });
  t.match(await put({ email: 'a@example.com', role: 'x' }), {
    status: 422,
    body: { error_code: 'email_exists' },
  });
  t.match(await put({ phone: '491', role: 'x' }), { status: 422, body: { error_code: 'phone_exists' } });
  t.match(await put({ ban_duration: '1 day', role: 'x' }), { status: 400 });
  t.match(await server.call('GET', `/admin/users/${id}`, { token }), {
    body: {
      email: 'b@example.com',
      phone: '',
      role: 'authenticated',
      identities: [{ email: 'b@example.com' }],
    },
  });
  t.match(await put({ email_confirm: true }), {
    body: { email_confirmed_at: /Z$/, identities: [{ identity_data: { email_verified: true } }] },
  });
  const missing = await server.call('PUT', `/admin/users/${id.replace('1', '2')}`, { token, body: {} });
  t.match(missing, { status: 404, body: { error_code: 'user_not_found', msg: 'User not found' } });
});

t.test('empty password of an update is too weak, and changes nothing', async (t) => {
  const server = await startAuthServer(t);
  const { userId } = await signUp(server);
  const answer = await server.call('PUT', `/admin/users/${userId}`, { token, body: { password: '' } });
  t.match(answer, { status: 422, body: { error_code: 'weak_password' } });
  t.match(await create(server, { email: 'none@example.com', password: '' }), { status: 200 });
  const body = { email: 'ada@example.com', password: 'correct horse' };
  t.match(await server.call('POST', '/token?grant_type=password', { body }), { status: 200 });
});

t.test('new email invalidates sent tokens and notifies the previous address', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    MAILER_NOTIFICATIONS_EMAIL_CHANGED_ENABLED: 'true',
    MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
  });
  await create(server, { email: 'old@example.com', email_confirm: true, id });
  const link = await create(server, { type: 'recovery', email: 'old@example.com' }, '/admin/generate_link');
  const body = { email: 'new@example.com', password: 'battery staple' };
  t.equal((await server.call('PUT', `/admin/users/${id}`, { token, body })).status, 200);
  const verified = await server.call('POST', '/verify', {
    body: { type: 'recovery', token_hash: link.body.hashed_token },
  });
  t.match(verified, { status: 403, body: { error_code: 'otp_expired' } });
  await smtp.mailTo('old@example.com', 2);
  t.same(
    smtp
      .mails()
      .map(({ subject }) => subject)
      .sort(),
    ['Your email address has been changed', 'Your password has been changed'],
  );
});

t.test('deleted user is gone and the email is available again', async (t) => {
  const server = await startAuthServer(t);
  const { userId, accessToken, refreshToken } = await signUp(server);
  t.same((await server.call('DELETE', `/admin/users/${userId}`, { token })).body, {});
  t.match(await server.call('GET', '/user', { token: accessToken }), { status: 403 });
  const refreshed = await server.call('POST', '/token?grant_type=refresh_token', {
    body: { refresh_token: refreshToken },
  });
  t.match(refreshed.body, { error_code: 'refresh_token_not_found' });
  t.match(await server.call('DELETE', `/admin/users/${userId}`, { token }), { status: 404 });
  await signUp(server);
});

t.test('sessions of a deleted user end, also of one whose row is kept', async (t) => {
  const server = await startAuthServer(t);
  for (const should_soft_delete of [false, true]) {
    const { userId, accessToken, refreshToken } = await signUp(server);
    const body = { should_soft_delete };
    t.equal((await server.call('DELETE', `/admin/users/${userId}`, { token, body })).status, 200);
    t.match(await server.call('GET', '/user', { token: accessToken }), { status: 403 });
    const refresh = { body: { refresh_token: refreshToken } };
    t.match(await server.call('POST', '/token?grant_type=refresh_token', refresh), {
      status: 400,
      body: { error_code: 'refresh_token_not_found' },
    });
    t.notMatch(await tableText(server, ['sessions', 'refresh_tokens']), userId);
  }
});

t.test('soft delete leaves no personal data', async (t) => {
  const server = await startAuthServer(t);
  const { userId, accessToken } = await signUp(server, { data: { full_name: 'Ada Lovelace' } });
  const body = { should_soft_delete: true };
  t.match(await server.call('DELETE', `/admin/users/${userId}`, { token, body }), { status: 200, body: {} });
  t.match(await server.call('GET', '/user', { token: accessToken }), { status: 403 });
  t.match(await server.call('GET', `/admin/users/${userId}`, { token }), { status: 404 });
  const rows = await tableText(server, ['users', 'identities', 'sessions', 'one_time_tokens']);
  t.match(rows, userId);
  // Shorter parts of a name appear in the random text of digests.
  t.notMatch(rows, /ada@|lovelace/i);
  await signUp(server);
});

t.test('filter matches parts of email, phone and name literally', async (t) => {
  const server = await startAuthServer(t);
  await create(server, { email: 'a_b@example.com' });
  server.clock.advance(1);
  await create(server, {
    email: 'acb@example.com',
    phone: '4912345',
    user_metadata: { full_name: 'Ada 100%' },
  });
  const found = async (query: string) => {
    const { status, body } = await server.call('GET', `/admin/users?${query}`, { token });
    return status === 200 && Array.isArray(body.users) ? body.users.map(({ email }) => email) : status;
  };
  t.same(await found('filter=a_b'), ['a_b@example.com']);
  t.same(await found('filter=A_B'), ['a_b@example.com']);
  t.same(await found('filter=ada'), ['acb@example.com']);
  t.same(await found('filter=100%25'), ['acb@example.com']);
  t.same(await found('filter=%25'), ['acb@example.com']);
  t.same(await found('filter=12345'), ['acb@example.com']);
  t.same(await found("filter=';drop"), []);
  t.same(await found('sort=created_at%20asc'), ['a_b@example.com', 'acb@example.com']);
  t.same(await found('sort=created_at'), ['acb@example.com', 'a_b@example.com']);
  for (const bad of [
    'sort=email',
    'sort=created_at%20up',
    'filter=%00',
    'page=x',
    'page=-1',
    'per_page=-5',
    'page=99999999999',
  ])
    t.equal(await found(bad), 400, bad);
});

t.test('header Link keeps the other query parameters', async (t) => {
  const server = await startAuthServer(t);
  for (const name of ['a', 'b', 'c']) await create(server, { email: `${name}@example.com` });
  const { headers } = await server.call('GET', '/admin/users?filter=example&page=&per_page=2', { token });
  t.equal(headers.get('x-total-count'), '3');
  t.equal(
    headers.get('link'),
    '</admin/users?page=2&filter=example&per_page=2>; rel="next", </admin/users?page=2&filter=example&per_page=2>; rel="last"',
  );
});

t.test('list contains only users of the audience', async (t) => {
  const server = await startAuthServer(t);
  await create(server, { email: 'a@example.com', aud: 'shop' });
  t.match((await server.call('GET', '/admin/users', { token })).body, { users: [], aud: '' });
  const { body } = await server.call('GET', '/admin/users', { token, headers: { 'x-jwt-aud': 'shop' } });
  t.match(body, { users: [{ email: 'a@example.com' }], aud: 'shop' });
});

t.test('user with an administrator role is an administrator until the session ends', async (t) => {
  const server = await startAuthServer(t, { JWT_ADMIN_ROLES: 'boss' });
  t.match(await create(server, { email: 'x@example.com' }), { status: 403 });
  const boss = adminToken({ role: 'boss' });
  const { userId } = await signUp(server);
  await server.call('PUT', `/admin/users/${userId}`, { token: boss, body: { role: 'boss' } });
  const signedIn = await server.call('POST', '/token?grant_type=password', {
    body: { email: 'ada@example.com', password: 'correct horse' },
  });
  const own = String(signedIn.body.access_token);
  t.equal((await server.call('GET', '/admin/users', { token: own })).status, 200);
  await server.call('POST', '/logout', { token: own });
  t.match(await server.call('GET', '/admin/users', { token: own }), {
    status: 403,
    body: { error_code: 'session_not_found' },
  });
});

t.test('infinite ban written by another tool is respected', async (t) => {
  const server = await startAuthServer(t);
  allowUnreadableRows(server.databaseUrl);
  const { userId, accessToken, refreshToken } = await signUp(server);
  const sql = postgres(server.databaseUrl, { max: 1 });
  await sql`update auth.users set banned_until = 'infinity' where id = ${userId}`;
  await sql.end();
  t.match(await server.call('GET', '/user', { token: accessToken }), {
    status: 403,
    body: { error_code: 'user_banned' },
  });
  const refresh = { body: { refresh_token: refreshToken } };
  t.match(await server.call('POST', '/token?grant_type=refresh_token', refresh), { status: 400 });
  t.match(await server.call('GET', `/admin/users/${userId}`, { token }), {
    status: 200,
    body: { banned_until: '9999-12-31T23:59:59.999Z' },
  });
});

t.test('audience that exceeds the column is rejected', async (t) => {
  const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const headers = { 'x-jwt-aud': 'a'.repeat(300) };
  const refusal = { status: 400, body: { error_code: 'validation_failed' } };
  const email = 'ada@example.com';
  for (const [path, body] of [
    ['/signup', { email, password: 'correct horse' }],
    ['/signup', {}],
    ['/otp', { email }],
    ['/invite', { email }],
    ['/admin/users', { email }],
  ] as const)
    t.match(await server.call('POST', path, { body, headers, token }), refusal, path);
});
