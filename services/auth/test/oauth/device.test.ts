// Devices without a browser: the user enters a code on another one.
import t from 'tap';
import { pageLanguages } from '../../src/pages/texts/texts.ts';
import { adminToken } from '../helpers/admin.ts';
import { type Answer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { createMachine, oauthServer, requestToken } from '../helpers/oauth-clients.ts';

const apiUrl = 'http://localhost:9999';
const ada = { identifier: 'ada@example.com', password: 'correct horse' };
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';

const server = await startAuthServer(t, { ...oauthServer, PAGES_ENABLED: 'true' });
const { accessToken } = await signUp(server);
const { client_id: clientId } = await createMachine(server, {
  client_name: 'Television',
  grant_types: [deviceGrant, 'refresh_token'],
  token_endpoint_auth_method: 'none',
});
const browser = new Browser({ [apiUrl]: server.url });
await browser.submit(`${apiUrl}/pages/sign-in`, ada);

const askForm = (form: Readonly<Record<string, string>>): Promise<Answer> =>
  server.call('POST', '/oauth/device_authorization', {
    body: new URLSearchParams(form).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });

/** Starts the request of a device. The limit of codes that are entered is full again. */
async function ask(form: Readonly<Record<string, string>> = {}) {
  server.clock.advance(10 * 60_000);
  const { status, body, text } = await askForm({ client_id: clientId, scope: 'openid email', ...form });
  if (status !== 200) throw new Error(text);
  const code = String(body.device_code);
  return {
    body,
    userCode: String(body.user_code),
    poll: (client = clientId) =>
      requestToken(server, { grant_type: deviceGrant, client_id: client, device_code: code }),
  };
}

/** Enters a code, and returns the response of the page. */
const enter = (user_code: string): Promise<Response> =>
  browser.submit(`${apiUrl}/pages/device`, { user_code }, { target: 'device' });

async function decide(userCode: string, action: string): Promise<string> {
  const page = (await enter(userCode)).headers.get('location') ?? '';
  const decided = await browser.submit(page, { action }, { target: 'consent' });
  const target = new URL(decided.headers.get('location') ?? '', apiUrl);
  t.notOk(target.searchParams.has('code'), 'the device gets its tokens with its own code');
  const done = await browser.open(target.href);
  return done.text();
}

t.test('a device gets tokens after the user has entered its code and agreed', async (t) => {
  const { body, userCode, poll } = await ask();
  t.match(body, {
    user_code: /^[B-Z]{4}-[B-Z]{4}$/,
    verification_uri: `${apiUrl}/pages/device`,
    verification_uri_complete: `${apiUrl}/pages/device?user_code=${userCode}`,
    expires_in: 600,
    interval: 5,
  });
  t.match(await poll(), { status: 400, body: { error: 'authorization_pending' } });
  t.match(await poll(), { status: 400, body: { error: 'slow_down' } });
  server.clock.advance(6_000);
  t.match(await poll(), { body: { error: 'slow_down' } }, 'the interval is 10 seconds then');
  const complete = await (await browser.open(String(body.verification_uri_complete))).text();
  t.match(complete, `value="${userCode}"`);

  const page = (await enter(userCode.toLowerCase().replace('-', ' '))).headers.get('location') ?? '';
  const shown = await (await browser.open(page)).text();
  for (const part of ['Television', 'See your email address', 'shows the code that you entered'])
    t.match(shown, part);
  t.match(await decide(userCode, 'approve'), 'The device has access');
  const tokens = await poll();
  t.match(tokens, { status: 200, body: { token_type: 'Bearer', scope: 'openid email', id_token: /^ey/ } });
  t.match(await poll(), { body: { error: 'invalid_grant' } }, 'once');
  const { body: grants } = await server.call('GET', '/user/oauth/grants', { token: accessToken });
  t.match(grants, [{ client: { name: 'Television' } }]);
  const refresh = { grant_type: 'refresh_token', client_id: clientId };
  const again = { ...refresh, refresh_token: String(tokens.body.refresh_token) };
  t.equal((await requestToken(server, again)).status, 200);

  const later = await ask();
  const asked = (await enter(later.userCode)).headers.get('location') ?? '';
  t.match(await (await browser.open(asked)).text(), 'Television', 'an earlier consent is not enough');
  await server.call('DELETE', `/user/oauth/grants?client_id=${clientId}`, { token: accessToken });
  t.match(await requestToken(server, again), { body: { error: 'invalid_grant' } });
});

t.test('an administrator gives a program admin scopes, and it has no other rights', async (t) => {
  const admin = { token: adminToken() };
  const { client_id: program } = await createMachine(server, {
    client_name: 'tollgate',
    grant_types: [deviceGrant, 'refresh_token'],
    token_endpoint_auth_method: 'none',
    scopes: ['tollgate:users:read', 'tollgate:audit:read', 'tollgate:clients:write'],
  });
  const { body: user } = await server.call('GET', '/user', { token: accessToken });
  const setRole = (role: string) =>
    server.call('PUT', `/admin/users/${String(user.id)}`, { ...admin, body: { role } });
  const signIn = async (form: Readonly<Record<string, string>>): Promise<string> => {
    const asked = await ask({ client_id: program, ...form });
    await decide(asked.userCode, 'approve');
    return String((await asked.poll(program)).body.access_token);
  };
  t.match(await askForm({ client_id: clientId, scope: 'tollgate:users:read' }), {
    body: { error: 'invalid_scope' },
  });
  await setRole('supabase_admin');
  const scope = 'tollgate:users:read tollgate:clients:write';
  const shown = await ask({ client_id: program, scope });
  const page = (await enter(shown.userCode)).headers.get('location') ?? '';
  t.match(await (await browser.open(page)).text(), 'Administer users and access: users:read');

  const token = await signIn({ scope });
  t.match(await server.call('GET', '/admin/users', { token }), { status: 200 });
  const lacks = (name: string) => ({
    status: 403,
    body: { error_code: 'insufficient_scope', msg: `The API key or access token lacks the scope ${name}` },
  });
  const body = { email: 'eve@example.com' };
  t.match(await server.call('POST', '/admin/users', { token, body }), lacks('users:write'));
  t.match(await server.call('GET', '/admin/audit', { token }), lacks('audit:read'), 'not asked for');
  t.match(await server.call('PUT', '/user', { token, body: { data: {} } }), { status: 403 });
  const own = `/admin/oauth/clients/${program}`;
  t.match(
    await server.call('PUT', own, { token, body: { redirect_uris: ['https://evil.example/'] } }),
    lacks('audit:read'),
    'a client with more rights cannot be changed',
  );
  const denied = await server.call('GET', '/admin/audit?action=admin_request_denied', admin);
  t.match(denied.body, [{ payload: { actor_username: 'ada@example.com', actor_kind: 'administrator' } }]);

  const resource = await signIn({ scope, resource: 'https://mcp.example.com' });
  t.match(await server.call('GET', '/admin/users', { token: resource }), lacks('users:read'));
  t.match(await server.call('GET', '/admin/users', { token: await signIn({ scope: 'openid' }) }), {
    status: 403,
  });
  await server.call('PUT', own, { ...admin, body: { scopes: ['tollgate:users:read'] } });
  t.match(
    await server.call('GET', '/admin/users', { token }),
    { status: 403, body: { error_code: 'session_not_found' } },
    'a session ends when its client loses an admin scope',
  );
  const narrow = await signIn({ scope: 'tollgate:users:read' });
  await setRole('authenticated');
  t.match(await server.call('GET', '/admin/users', { token: narrow }), {
    status: 403,
    body: { error_code: 'not_admin' },
  });
  t.match(await server.call('PUT', own, { ...admin, body: { scopes: ['tollgate:users:delete'] } }), {
    status: 400,
    body: { msg: /unknown scope of the admin API/ },
  });
});

t.test('refused, expired and foreign requests have their errors', async (t) => {
  const denied = await ask();
  t.match(await decide(denied.userCode, 'deny'), 'The device has no access');
  t.match(await denied.poll(), { status: 400, body: { error: 'access_denied' } });

  const expired = await ask();
  server.clock.advance(10 * 60_000);
  t.match(await expired.poll(), { status: 400, body: { error: 'expired_token' } });
  t.match(await (await enter(expired.userCode)).text(), 'The code is not valid, or has expired');

  const { poll, userCode } = await ask();
  const other = await createMachine(server, {
    grant_types: [deviceGrant],
    token_endpoint_auth_method: 'none',
  });
  t.match(await poll(other.client_id), { body: { error: 'invalid_grant' } });
  await decide(userCode, 'approve');
  const answers = await Promise.all(Array.from({ length: 10 }, () => poll()));
  t.equal(answers.filter(({ status }) => status === 200).length, 1, 'one of concurrent requests');

  const machine = await createMachine(server);
  const { client_id, client_secret } = machine;
  t.match(await askForm({ client_id, client_secret }), { body: { error: 'unauthorized_client' } });
  t.match(await askForm({ client_id }), { status: 401, body: { error: 'invalid_client' } });
  t.match(await askForm({ client_id: clientId, scope: 'x' }), { body: { error: 'invalid_scope' } });
  t.match(await askForm({ client_id: clientId, resource: 'x' }), { body: { error: 'invalid_target' } });
  t.match(await requestToken(server, { grant_type: deviceGrant, client_id: clientId }), {
    body: { error: 'invalid_request' },
  });
});

t.test('codes cannot be guessed', async (t) => {
  const { userCode } = await ask();
  const answers = await Promise.all(Array.from({ length: 20 }, () => enter('BBBB-BBBB')));
  t.same([...new Set(answers.map(({ status }) => status))], [400]);
  t.equal((await enter(userCode)).status, 429);
});

t.test('the page has the language of the browser', async (t) => {
  for (const [language, { deviceTitle }] of Object.entries(pageLanguages)) {
    const page = await browser.open(`${apiUrl}/pages/device`, undefined, { 'accept-language': language });
    t.match(await page.text(), deviceTitle);
  }
});

t.test('the metadata name the endpoint', async (t) => {
  const { body } = await server.call('GET', '/.well-known/oauth-authorization-server');
  t.match(body, { device_authorization_endpoint: `${apiUrl}/oauth/device_authorization` });
  t.ok((body.grant_types_supported as unknown[]).includes(deviceGrant)); // a list in the schema
});
