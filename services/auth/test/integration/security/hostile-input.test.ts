import { sendTcp } from '@tollgate/testkit/tcp';
import t from 'tap';
import { adminToken } from '../../helpers/admin.ts';
import { signUp, startAuthServer } from '../../helpers/auth-server.ts';
import { rawRequest } from '../../helpers/raw-request.ts';

const token = adminToken();

t.test('user search takes neither patterns nor SQL', async (t) => {
  const server = await startAuthServer(t);
  for (const email of ['a_b@example.com', 'axb@example.com', "o'brien@example.com"])
    await signUp(server, { email });
  const found = async (filter: string) => {
    const answer = await server.call('GET', `/admin/users?filter=${encodeURIComponent(filter)}`, { token });
    // Parsed boundary: the form of the list.
    const users = answer.body.users as { email: string }[];
    return users.map(({ email }) => email);
  };
  t.same(await found('a_b@'), ['a_b@example.com'], '_ stands for itself');
  t.same(await found('%'), [], '% stands for itself');
  t.same(await found('\\'), []);
  t.same(await found("o'brien"), ["o'brien@example.com"]);
  t.same(await found("' or 1=1 --"), []);
});

t.test('unknown sort orders are rejected', async (t) => {
  const server = await startAuthServer(t);
  for (const sort of [
    'created_at;drop table users',
    'encrypted_password asc',
    '(select 1) asc',
    'created_at asc, email desc',
    'constructor asc',
  ]) {
    const { status } = await server.call('GET', `/admin/users?sort=${encodeURIComponent(sort)}`, { token });
    t.ok(status === 400 || status === 200, `${sort}: ${status}`);
  }
  t.match(await server.call('GET', '/admin/users?sort=created_at%20asc', { token }), { status: 200 });
});

t.test('page size is limited', async (t) => {
  const server = await startAuthServer(t);
  for (const query of ['page=-1', 'page=1e9', 'per_page=-5', 'page=99999999999999999999', 'page=1;drop']) {
    const { status } = await server.call('GET', `/admin/users?${query}`, { token });
    t.ok(status === 400 || status === 200, `${query}: ${status}`);
  }
});

t.test('NUL and lone surrogates are rejected in all inputs', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  const password = 'correct horse';
  const bodies: readonly (readonly [string, string, string])[] = [
    ['POST', '/signup', '{"email":"a\\u0000@example.com","password":"correct horse"}'],
    ['POST', '/signup', '{"email":"a@example.com","password":"correct\\u0000horse"}'],
    ['POST', '/signup', '{"email":"a@example.com","password":"correct horse","data":{"a\\u0000":1}}'],
    ['POST', '/token?grant_type=password', '{"email":"ada@example.com","password":"\\u0000"}'],
    ['POST', '/token?grant_type=refresh_token', '{"refresh_token":"\\u0000aaaaaaaaaaaaaaaa"}'],
    ['POST', '/verify', '{"type":"signup","token":"\\u0000","email":"ada@example.com"}'],
    ['POST', '/otp', '{"email":"\\udc00@example.com"}'],
    ['PUT', '/user', '{"data":{"deep":[{"x":"\\ud800"}]}}'],
    ['PUT', '/user', '{"data":{"x":"\\u0000"}}'],
  ];
  for (const [method, path, body] of bodies)
    t.match(
      await server.call(method, path, { body, token: accessToken }),
      { status: 400 },
      `${path} ${body}`,
    );
  for (const path of [
    '/admin/users?filter=%00',
    '/admin/audit?query=%00',
    '/admin/users/%00',
    '/verify?type=signup&token=%00',
    '/user/sessions/%00',
    '/token?grant_type=%00',
  ]) {
    const { status } = await server.call('GET', path, { token });
    t.equal(status, 400, path);
  }
  t.equal(
    (
      await server.call('POST', '/token?grant_type=password', {
        body: { email: 'ada@example.com', password },
      })
    ).status,
    200,
  );
});

t.test('body over 32 KiB is rejected, and so is deep nesting', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken } = await signUp(server);
  // No metadata: these have a bound of their own.
  const fill = (bytes: number) => JSON.stringify({ unknown: 'x'.repeat(bytes) });
  t.match(await server.call('PUT', '/user', { token: accessToken, body: fill(32 * 1024 - 100) }), {
    status: 200,
  });
  t.match(await server.call('PUT', '/user', { token: accessToken, body: fill(32 * 1024) }), {
    status: 413,
    body: { error_code: 'request_entity_too_large' },
  });
  for (const body of [
    '['.repeat(32_000),
    '{"a":'.repeat(6_000),
    `{"data":${'['.repeat(16_000)}${']'.repeat(16_000)}}`,
  ])
    t.match(await server.call('POST', '/signup', { body }), {
      status: 400,
      body: { error_code: 'bad_json' },
    });
  t.match(await server.call('GET', '/health'), { status: 200 });
});

t.test('requests that are not HTTP are rejected in the format of other errors', async (t) => {
  const { port } = new URL((await startAuthServer(t)).url);
  const send = (lines: string) => sendTcp(`${lines}\r\nhost: x\r\n\r\n`, { port: Number(port) });
  for (const line of ['GET /é HTTP/1.1', 'GET /a b HTTP/1.1', 'FOO / HTTP/1.1'])
    t.match(
      await send(line),
      /^HTTP\/1.1 400 [\s\S]*{"code":400,"error_code":"validation_failed","msg":"The/,
      line,
    );
  const large = await send(`GET / HTTP/1.1\r\nx: ${'x'.repeat(40_000)}`);
  t.match(large, /^HTTP\/1.1 431 [\s\S]*"error_code":"request_entity_too_large"/);
});

t.test('body longer than its Content-Length is cut', async (t) => {
  const server = await startAuthServer(t);
  const headers = ['content-type', 'application/json', 'content-length', '3000000'];
  const answer = await rawRequest(server.url, '/signup', { method: 'POST', headers, body: '{}' }).catch(
    () => ({
      status: 413,
    }),
  );
  t.equal(answer.status, 413);
});

t.test('long text that almost matches is rejected in linear time', async (t) => {
  const server = await startAuthServer(t, { PASSWORD_REQUIRED_CHARACTERS: 'abc:\\::()*+' });
  // Not by the clock: others may have the processor meanwhile.
  const before = process.cpuUsage();
  for (const email of [
    `${'a'.repeat(64)}@${'a.'.repeat(95)}!`,
    `${'a.'.repeat(16_000)}@`,
    `a@${'a-'.repeat(16_000)}`,
    `"${'\\'.repeat(16_000)}"@example.com`,
  ])
    t.match(await server.call('POST', '/signup', { body: { email, password: '(a:)(a:)' } }), { status: 400 });
  t.match(
    await server.call('POST', '/signup', {
      body: { phone: `+${'1'.repeat(32_000)}`, password: '(a:)(a:)' },
    }),
    { status: 400 },
  );
  // Quadratic time over 32,000 characters would be seconds.
  const { user, system } = process.cpuUsage(before);
  t.ok(user + system < 10_000_000, `${user + system} µs`);
});

t.test('empty password and password over 72 bytes are rejected', async (t) => {
  const server = await startAuthServer(t);
  const ask = (password: string) =>
    server.call('POST', '/signup', { body: { email: 'eve@example.com', password } });
  t.match(await ask(''), { status: 400, body: { msg: 'Signup requires a valid password' } });
  t.match(await ask('é'.repeat(37)), {
    status: 400,
    body: { error_code: 'validation_failed', msg: 'Password cannot be longer than 72 characters' },
  });
  t.match(await ask('é'.repeat(36)), { status: 200 });
  const cut = await server.call('POST', '/token?grant_type=password', {
    body: { email: 'eve@example.com', password: `${'é'.repeat(36)}x` },
  });
  t.match(cut, { status: 400, body: { error_code: 'invalid_credentials' } });
});
