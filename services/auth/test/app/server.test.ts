import t from 'tap';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';

t.test('errors have the format of the requested API version', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  const again = (headers: Record<string, string>) =>
    server.call('POST', '/signup', {
      body: { email: 'ada@example.com', password: 'correct horse' },
      headers,
    });

  const legacy = await again({});
  t.same(
    [legacy.status, legacy.body],
    [400, { code: 400, error_code: 'user_already_exists', msg: 'User already registered' }],
  );
  for (const header of ['x-supabase-api-version', 'x-svc-api-version']) {
    const versioned = await again({ [header]: '2024-01-01' });
    t.same(
      [versioned.status, versioned.body, versioned.headers.get(header)],
      [422, { code: 'user_already_exists', message: 'User already registered' }, '2024-01-01'],
    );
    t.match(await again({ [header]: '2023-12-31' }), { body: { code: 400 } });
    t.match(await again({ [header]: 'yesterday' }), { body: { code: 400 } });
  }
});

t.test('a weak password error has reasons', async (t) => {
  const server = await startAuthServer(t, { PASSWORD_REQUIRED_CHARACTERS: 'abc:0\\:9' });
  const body = { email: 'ada@example.com', password: 'xyz' };
  const weak_password = { reasons: ['length', 'characters'] };
  const msg =
    'Password should be at least 6 characters. Password should contain at least one character of each: abc, 0:9.';
  t.match(await server.call('POST', '/signup', { body }), {
    status: 422,
    body: { code: 422, error_code: 'weak_password', msg, weak_password },
  });
  const headers = { 'x-supabase-api-version': '2024-01-01' };
  t.match(await server.call('POST', '/signup', { body, headers }), {
    status: 422,
    body: { code: 'weak_password', message: msg, weak_password },
  });
});

t.test('null is the same as a missing member', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server, { phone: null, code_challenge: null, data: { kept: null } });
});

t.test('bodies that are not JSON, or have other types, are rejected', async (t) => {
  const server = await startAuthServer(t);
  for (const body of [
    '{',
    '[]',
    '"x"',
    '{"email":1}',
    '{"email":"a\\u0000@b.c"}',
    '{"data":{"a":"\\ud800"}}',
  ]) {
    t.match(
      await server.call('POST', '/signup', { body }),
      { status: 400, body: { error_code: 'bad_json' } },
      body,
    );
  }
  const deep = `{"data":${'{"a":'.repeat(100)}1${'}'.repeat(101)}`;
  t.match(await server.call('POST', '/signup', { body: deep }), {
    status: 400,
    body: { error_code: 'bad_json' },
  });
  const large = { email: 'ada@example.com', password: 'x'.repeat(1024 * 1024) };
  t.match(await server.call('POST', '/signup', { body: large }), {
    status: 413,
    body: { error_code: 'request_entity_too_large' },
  });
});

t.test('__proto__ in metadata is removed', async (t) => {
  const server = await startAuthServer(t);
  const body = '{"email":"a@b.co","password":"correct horse","data":{"__proto__":{"admin":true},"ok":1}}';
  const answer = await server.call('POST', '/signup', { body });
  t.match(answer, { status: 200, body: { user: { user_metadata: { ok: 1 } } } });
  t.notMatch(answer.text, /admin/);
});

t.test('CORS allows all origins', async (t) => {
  const server = await startAuthServer(t, { CORS_ALLOWED_HEADERS: 'x-mine' });
  const { status, headers } = await server.call('OPTIONS', '/token', {
    headers: {
      origin: 'https://app.example.com',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'apikey,x-mine',
    },
  });
  t.equal(status, 204);
  t.equal(headers.get('access-control-allow-origin'), '*');
  t.match(headers.get('access-control-allow-headers'), /apikey.*x-mine/);
  t.equal(headers.get('access-control-max-age'), '7200');
});

t.test('tokens with another key or algorithm are rejected', async (t) => {
  const server = await startAuthServer(t);
  t.match(await server.call('GET', '/user'), { status: 401, body: { error_code: 'no_authorization' } });
  const { accessToken } = await signUp(server);
  const [, claims = '', signature = ''] = accessToken.split('.');
  const header = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  for (const token of [
    'x',
    `${header({ alg: 'none' })}.${claims}.`,
    `${header({ alg: 'HS512' })}.${claims}.${signature}`,
    `${header({ alg: 'HS256', crit: ['x'] })}.${claims}.${signature}`,
    `${header({ alg: 'HS256' })}.${claims}.${signature}`,
    `${accessToken}x`,
  ]) {
    t.match(await server.call('GET', '/user', { token }), {
      status: 403,
      body: { error_code: 'bad_jwt', msg: /^invalid JWT: unable to parse or verify signature/ },
    });
  }
  server.clock.advance(3_600_000);
  t.match(await server.call('GET', '/user', { token: accessToken }), {
    status: 403,
    body: { msg: /expired/ },
  });
});

t.test('passwords, tokens and email addresses are not logged', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken, refreshToken } = await signUp(server);
  await server.call('GET', '/user?access_token=in-the-query', { token: accessToken });
  t.match(server.logs(), /"path":"\/user"/);
  for (const secret of ['correct horse', accessToken, refreshToken, 'in-the-query', 'ada@example.com'])
    t.notOk(server.logs().includes(secret), secret);
});

t.test('a form gets a response in the format of OAuth 2.0', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  const form = (body: string) =>
    server.call('POST', '/token', { body, headers: { 'content-type': 'application/x-www-form-urlencoded' } });
  t.match(await form('grant_type=password&username=ada%40example.com&password=correct%20horse'), {
    status: 200,
    body: { token_type: 'bearer' },
  });
  t.same((await form('grant_type=password&username=ada%40example.com&password=wrong')).body, {
    error: 'invalid_grant',
    error_description: 'Invalid login credentials',
  });
  t.match(await form('grant_type=magic'), { status: 400, body: { error: 'unsupported_grant_type' } });
});
