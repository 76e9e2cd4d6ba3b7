import { createHash } from 'node:crypto';
import { createLogger } from '@tollgate/kit/logger';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import { startWebServer } from '@tollgate/testkit/web-server';
import type { Test } from 'tap';
import t from 'tap';
import { LeakedPasswords } from '../../src/passwords/leaked-passwords.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';

const leaked = 'correct horse battery staple';
const digits = createHash('sha1').update(leaked).digest('hex').toUpperCase();
const padding = `${'0'.repeat(35)}:0`;

/** A service with one leaked password, and the variables that enable it. */
async function pwnedPasswords(t: Test, { count = 42 }: { readonly count?: number } = {}) {
  const service = { status: 200, body: [padding, `${digits.slice(5)}:${count}`].join('\r\n') };
  const requests: { readonly path: string; readonly userAgent: string; readonly padding: unknown }[] = [];
  const { port } = await startWebServer(t, ({ url = '', headers }, response) => {
    requests.push({ path: url, userAgent: headers['user-agent'] ?? '', padding: headers['add-padding'] });
    response.writeHead(service.status).end(service.body);
  });
  const url = `http://127.0.0.1:${port}`;
  return { service, requests, url, variables: { PASSWORD_HIBP_ENABLED: 'true', PASSWORD_HIBP_URL: url } };
}

function lookUp(url: string, clock = fakeClock(0)) {
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const settings = { passwordHibpEnabled: true, passwordHibpUrl: url, passwordHibpUserAgent: 'a test' };
  return new LeakedPasswords(settings, { logger, nowMs: clock.nowMs });
}

t.test('only five digits of the hash are sent, and padding lines are ignored', async (t) => {
  const { requests, url } = await pwnedPasswords(t);
  const passwords = lookUp(`${url}/`);
  t.equal(await passwords.includes(leaked), true);
  t.same(requests, [{ path: `/range/${digits.slice(0, 5)}`, userAgent: 'a test', padding: 'true' }]);
  t.equal(await passwords.includes('not leaked'), false);

  const onlyPadding = await pwnedPasswords(t, { count: 0 });
  t.equal(await lookUp(onlyPadding.url).includes(leaked), false);
});

t.test('lookups pause after a failed request', async (t) => {
  const { service, requests, url } = await pwnedPasswords(t);
  const clock = fakeClock(0);
  const passwords = lookUp(url, clock);
  service.status = 503;
  await t.rejects(passwords.includes(leaked), { message: /status 503/ });
  service.status = 200;
  await t.rejects(passwords.includes(leaked), { message: /paused/ });
  t.equal(requests.length, 1);
  clock.advance(10_000);
  t.equal(await passwords.includes(leaked), true);
});

t.test('oversized response is rejected', async (t) => {
  const { service, url } = await pwnedPasswords(t);
  service.body = 'x'.repeat(300_000);
  await t.rejects(lookUp(url).includes(leaked), { message: /more than 262144 bytes/ });
});

t.test('leaked password is rejected wherever a password is set', async (t) => {
  const { variables } = await pwnedPasswords(t);
  const server = await startAuthServer(t, variables);
  const { accessToken, userId } = await signUp(server, { password: 'not leaked' });
  const refusal = {
    status: 422,
    body: { error_code: 'weak_password', msg: /known from leaks/, weak_password: { reasons: ['pwned'] } },
  };
  const email = 'grace@example.com';
  const token = adminToken();
  t.match(await server.call('POST', '/signup', { body: { email, password: leaked } }), refusal);
  t.match(await server.call('PUT', '/user', { token: accessToken, body: { password: leaked } }), refusal);
  const link = { type: 'signup', email, password: leaked };
  t.match(await server.call('POST', '/admin/generate_link', { token, body: link }), refusal);
  t.match(await server.call('PUT', `/admin/users/${userId}`, { token, body: { password: leaked } }), refusal);
  t.notMatch(server.logs(), leaked);
});

t.test('sign-in with a leaked password reports the weakness', async (t) => {
  const { service, variables } = await pwnedPasswords(t);
  const server = await startAuthServer(t, { ...variables, PASSWORD_HIBP_FAIL_CLOSED: 'true' });
  const known = service.body;
  service.body = padding;
  await signUp(server, { password: leaked });
  service.body = known;
  const body = { email: 'ada@example.com', password: leaked };
  const signIn = () => server.call('POST', '/token?grant_type=password', { body });
  t.match(await signIn(), { status: 200, body: { weak_password: { reasons: ['pwned'] } } });
  service.status = 500;
  const answer = await signIn();
  t.equal(answer.status, 200, 'fails open');
  t.notOk('weak_password' in answer.body);
});

t.test('fails open if the service is unavailable, or closed with PASSWORD_HIBP_FAIL_CLOSED', async (t) => {
  const { service, variables } = await pwnedPasswords(t);
  service.status = 500;
  const body = { email: 'ada@example.com', password: leaked };
  const signUpAt = (server: AuthServer) => server.call('POST', '/signup', { body });
  const open = await startAuthServer(t, variables);
  t.equal((await signUpAt(open)).status, 200);
  t.match(open.logs(), /leaked passwords unavailable/);
  const closed = await startAuthServer(t, { ...variables, PASSWORD_HIBP_FAIL_CLOSED: 'true' });
  t.match(await signUpAt(closed), {
    status: 500,
    body: { error_code: 'unexpected_failure', msg: /known from leaks, please try again later/ },
  });
});

t.test('no lookup is made unless enabled', async (t) => {
  const { requests, variables } = await pwnedPasswords(t);
  const server = await startAuthServer(t, { ...variables, PASSWORD_HIBP_ENABLED: 'false' });
  await signUp(server, { password: leaked });
  t.same(requests, []);
});
