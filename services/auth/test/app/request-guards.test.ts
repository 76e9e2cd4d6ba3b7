import { once } from 'node:events';
import { connect } from 'node:net';
import t, { type Test } from 'tap';
import { bodyLimits } from '../../src/http/api.ts';
import { findFormProblem, findJsonProblem } from '../../src/http/body-parsers.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { relyingParty } from '../helpers/authenticator.ts';

/**
 * Sends the head of a request that announces a body and never sends it; answers what the server
 * says all the same.
 */
async function announce(
  test: Test,
  server: AuthServer,
  line: string,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  test.teardown(() => socket.destroy());
  const fields = Object.entries({ host: 'x', 'content-type': 'application/json', ...headers });
  socket.write(`${line} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer]; // the first bytes of the answer
  return answer.toString();
}

t.test('a body above the limit of its route is rejected before it arrives', async (t) => {
  const server = await startAuthServer(t, relyingParty);
  const authorization = `Bearer ${adminToken()}`;
  const limits: readonly (readonly [line: string, bytes: number])[] = [
    ['POST /token?grant_type=password', bodyLimits.token],
    ['POST /signup', bodyLimits.metadata],
    ['POST /otp', bodyLimits.metadata],
    ['POST /magiclink', bodyLimits.metadata],
    ['PUT /user', bodyLimits.metadata],
    ['POST /recover', bodyLimits.contact],
    ['POST /resend', bodyLimits.contact],
    ['POST /verify', bodyLimits.contact],
    ['POST /logout', bodyLimits.small],
    ['POST /factors', bodyLimits.small],
    ['POST /factors/x/challenge', bodyLimits.small],
    ['POST /factors/x/verify', bodyLimits.contact],
    ['POST /passkeys/registration/options', bodyLimits.small],
    ['POST /passkeys/registration/verify', bodyLimits.contact],
    ['POST /passkeys/authentication/options', bodyLimits.contact],
    ['POST /passkeys/authentication/verify', bodyLimits.contact],
    ['PATCH /passkeys/x', bodyLimits.small],
    ['POST /invite', bodyLimits.admin],
    ['POST /admin/users', bodyLimits.admin],
    ['PUT /admin/users/x', bodyLimits.admin],
    ['POST /admin/generate_link', bodyLimits.admin],
  ];
  for (const [line, bytes] of limits) {
    t.ok(bytes <= 64 * 1024, line);
    const answer = await announce(t, server, line, { authorization, 'content-length': String(bytes + 1) });
    t.match(answer, /^HTTP\/1\.1 413 /, line);
    t.match(answer, /request_entity_too_large/, line);
    t.match(answer, /\r\nconnection: close\r\n/i, line);
  }
});

t.test('a body of unknown length is rejected once it exceeds the limit', async (t) => {
  const server = await startAuthServer(t);
  const answer = await fetch(`${server.url}/token?grant_type=password`, {
    method: 'POST',
    body: new Blob(['x'.repeat(bodyLimits.token + 1)]).stream(),
    duplex: 'half',
  });
  t.equal(answer.status, 413);
});

t.test('the largest metadata are accepted, even if escaped', async (t) => {
  const server = await startAuthServer(t);
  // Without braces, quotation marks and the key, 4 KiB.
  const note = `\\u00e9`.repeat(2042);
  const body = `{"email":"ada@example.com","password":"correct horse","data":{"n":"${note}"}}`;
  t.match(await server.call('POST', '/signup', { body }), { status: 200 });
  const numbers = Array.from({ length: 2043 }, () => 1);
  t.match(
    await server.call('POST', '/admin/users', {
      token: adminToken(),
      body: { email: 'bob@example.com', user_metadata: { n: numbers } },
    }),
    { status: 200 },
  );
});

t.test('depth and size of a body are checked before parsing', async (t) => {
  const server = await startAuthServer(t);
  const members = Array.from({ length: 2000 }, (_, index) => `"${index}":1`).join();
  // None of them ends: the parser, had it been reached, would complain of that.
  const bodies: readonly (readonly [body: string, reason: RegExp])[] = [
    [`{${members}`, /it has more than 1024 members$/],
    [`{"a":[${'1,'.repeat(5000)}`, /it has more than 3072 members and list items$/],
    ['['.repeat(10_000), /it has more than 64 levels$/],
    ['{"a":'.repeat(5000), /it has more than 64 levels$/],
  ];
  for (const [body, msg] of bodies)
    t.match(await server.call('POST', '/signup', { body }), {
      status: 400,
      body: { error_code: 'bad_json', msg },
    });
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  t.match(await server.call('POST', '/token', { headers, body: 'a=&'.repeat(100) }), {
    status: 400,
    body: { error_code: 'bad_json', msg: /the form has more than 64 fields$/ },
  });
});

t.test('only characters outside of strings count', (t) => {
  t.equal(findJsonProblem(JSON.stringify({ a: '[{:,'.repeat(5000) })), undefined);
  t.equal(findJsonProblem(JSON.stringify({ a: `${'"['.repeat(500)}\\` })), undefined);
  t.equal(findJsonProblem(`{"a":"\\\\","b":${'['.repeat(64)}`), 'it has more than 64 levels');
  t.equal(findJsonProblem(`{"a":${'['.repeat(63)}${']'.repeat(63)},"b":[[]]}`), undefined);
  t.equal(findJsonProblem('"never closed'), undefined);
  t.equal(findJsonProblem('"ends with \\'), undefined);
  t.equal(findFormProblem('a=1&b=2'), undefined);
  t.end();
});

t.test('a rate-limited client is rejected before its body is read', async (t) => {
  const server = await startAuthServer(t, {
    RATE_LIMIT_HEADER: 'x-client',
    RATE_LIMIT_TOKEN_REFRESH: '0',
    RATE_LIMIT_VERIFY: '0',
    RATE_LIMIT_OTP: '0',
  });
  for (const line of ['POST /token?grant_type=password', 'POST /verify', 'POST /otp', 'POST /recover'])
    t.match(
      await announce(t, server, line, { 'x-client': 'one', 'content-length': '100' }),
      /^HTTP\/1\.1 429 .*over_request_rate_limit/s,
      line,
    );
});

t.test('an unknown path is rejected before the body is read', async (t) => {
  const server = await startAuthServer(t);
  t.match(await announce(t, server, 'POST /nothing', { 'content-length': '100' }), /^HTTP\/1\.1 404 /);
  t.match(await announce(t, server, 'PUT /token', { 'content-length': '100' }), /^HTTP\/1\.1 405 /);
  t.match(await announce(t, server, 'POST /admin/users', { 'content-length': '100' }), /^HTTP\/1\.1 401 /);
});

t.test('all error responses have CORS headers', async (t) => {
  const server = await startAuthServer(t, { RATE_LIMIT_HEADER: 'x-client', RATE_LIMIT_VERIFY: '0' });
  const headers = { origin: 'https://app.example.com', 'x-client': 'one' };
  for (const [method, path, status] of [
    ['GET', '/nothing', 404],
    ['PUT', '/token', 405],
    ['GET', '/admin/users', 401],
    ['GET', '/verify', 429],
    ['GET', '/health?x=%00', 400],
  ] as const) {
    const answer = await server.call(method, path, { headers });
    t.equal(answer.status, status, path);
    t.equal(answer.headers.get('access-control-allow-origin'), '*', path);
  }
});

t.test('an overlong X-Forwarded-For is truncated at the start', async (t) => {
  const server = await startAuthServer(t, { SECURITY_TRUSTED_PROXIES: 'loopback,10.0.0.0/8' });
  const made = (count: number) =>
    ['192.0.2.1', ...Array.from({ length: count }, () => '10.0.0.1')].join(', ');
  await server.call('GET', '/health', { headers: { 'x-forwarded-for': made(10) } });
  t.match(server.logs(), /"remote_addr":"192\.0\.2\.1"/);
  await server.call('GET', '/settings', { headers: { 'x-forwarded-for': made(1500) } });
  t.match(server.logs(), /"path":"\/settings".*"remote_addr":"10\.0\.0\.1"/);
});

t.test('the OpenAPI document is served as JSON', async (t) => {
  const server = await startAuthServer(t);
  const first = await server.call('GET', '/openapi.json');
  t.match(first.body, { openapi: '3.1.0' });
  t.same((await server.call('GET', '/openapi.json')).text, first.text);
  await signUp(server);
});
