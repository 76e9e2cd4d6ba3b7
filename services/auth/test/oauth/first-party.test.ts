// The clients of the console and the command line, which the settings define.
import { cliClientId, consoleClientId } from '@tollgate/admin-clients/first-party';
import { compareText } from '@tollgate/kit/text';
import postgres from 'postgres';
import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { pkce, requestToken } from '../helpers/oauth-clients.ts';

const apiUrl = 'http://localhost:9999';
const consoleUrl = 'https://console.example.com';
const path = '/admin/oauth/clients';
const token = adminToken();
const enabled = { OAUTH_SERVER_ENABLED: 'true', PAGES_ENABLED: 'true' };
const both = { ...enabled, OAUTH_SERVER_CONSOLE_URL: `${consoleUrl}/`, OAUTH_SERVER_CLI_ENABLED: 'true' };

/** The clients that exist, without their times. */
async function listClients(server: AuthServer): Promise<readonly object[]> {
  const { body } = await server.call('GET', path, { token });
  // Parsed boundary: a list of objects.
  return (body.clients as Readonly<Record<string, unknown>>[])
    .map(({ created_at: _created, updated_at: _updated, ...client }) => client)
    .toSorted((a, b) => String(a.client_name).localeCompare(String(b.client_name)));
}

const builtIn = { client_type: 'public', token_endpoint_auth_method: 'none', built_in: true };
const consoleClient = {
  ...builtIn,
  client_id: consoleClientId,
  redirect_uris: [`${consoleUrl}/callback`],
  post_logout_redirect_uris: [`${consoleUrl}/`],
  grant_types: ['authorization_code', 'refresh_token'],
};
const cliClient = {
  ...builtIn,
  client_id: cliClientId,
  redirect_uris: [],
  grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
};

/** An administrator, with the access token of a session at an app. */
async function signUpAdministrator(server: AuthServer) {
  const { userId, accessToken: appToken } = await signUp(server);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { role: 'supabase_admin' } });
  return { userId, appToken };
}

async function signInToConsole(server: AuthServer, browser = new Browser({ [apiUrl]: server.url })) {
  await browser.submit(`${apiUrl}/pages/sign-in`, {
    identifier: 'ada@example.com',
    password: 'correct horse',
  });
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: consoleClientId,
    redirect_uri: `${consoleUrl}/callback`,
    // The console asks for no ID token.
    scope: 'email tollgate:users:read tollgate:limits:write',
    prompt: 'consent',
    code_challenge: pkce.challenge,
    code_challenge_method: 'S256',
  });
  const asked = await browser.open(`${apiUrl}/oauth/authorize?${query}`);
  const page = new URL(asked.headers.get('location') ?? '', apiUrl).href;
  const decided = await browser.submit(page, { action: 'approve' }, { target: 'consent' });
  const target = new URL(decided.headers.get('location') ?? '');
  const { body } = await requestToken(server, {
    grant_type: 'authorization_code',
    client_id: consoleClientId,
    redirect_uri: `${consoleUrl}/callback`,
    code: target.searchParams.get('code') ?? '',
    code_verifier: pkce.verifier,
  });
  return { accessToken: String(body.access_token), refreshToken: String(body.refresh_token) };
}

t.test('the settings define the clients, for all replicas', async (t) => {
  const server = await startAuthServer(t, enabled);
  const { databaseUrl } = server;
  const start = (variables: Readonly<Record<string, string>>): Promise<AuthServer> =>
    startAuthServer(t, { ...variables, DB_DATABASE_URL: databaseUrl });
  t.same(await listClients(server), []);
  t.match(
    await server.call('POST', '/oauth/device_authorization', {
      body: new URLSearchParams({ client_id: cliClientId }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
    { status: 401, body: { error: 'invalid_client' } },
  );

  const [first, second] = await Promise.all([start(both), start(both)]);
  for (const replica of [first, second, server])
    t.match(await listClients(replica), [cliClient, consoleClient]);
  const { userId, appToken } = await signUpAdministrator(first);
  const browser = new Browser({ [apiUrl]: first.url });
  const endSession = async (path: string, by: string) => {
    const { body } = await first.call('GET', '/user/sessions', { token: appToken });
    // Parsed boundary: members that the test uses.
    const sessions = body.sessions as { id: string; current: boolean; client_id?: string }[];
    const remote = sessions.find(({ current, client_id: client }) => !current && client === undefined);
    const { status } = await first.call('DELETE', `${path}/${remote?.id}`, { token: by });
    t.equal(status, 200);
  };
  for (const [name, end] of [
    ['on the pages', () => browser.submit(`${apiUrl}/pages/account`, {}, { target: 'sign-out' })],
    ['by the user from elsewhere', () => endSession('/user/sessions', appToken)],
    ['by an administrator', () => endSession(`/admin/users/${userId}/sessions`, token)],
  ] as const) {
    const session = await signInToConsole(first, browser);
    await end();
    const grant = { grant_type: 'refresh_token', client_id: consoleClientId };
    const answer = await requestToken(first, { ...grant, refresh_token: session.refreshToken });
    t.match(
      answer,
      { status: 400, body: { error: 'invalid_grant' } },
      `session of the browser ended ${name}`,
    );
  }

  const { accessToken, refreshToken } = await signInToConsole(first);
  const asUser = { token: accessToken };
  t.match(await server.call('GET', '/admin/users', asUser), { status: 200 });
  t.match(await server.call('GET', '/admin/audit', asUser), { status: 403 }, 'not asked for');
  const verify = async () => {
    const verified = { token, body: { credential: accessToken } };
    return (await server.call('POST', '/admin/credentials/verify', verified)).body;
  };
  t.match(await verify(), {
    valid: true,
    administrator: { name: 'ada@example.com', admin_scopes: ['users:read', 'limits:write'] },
  });
  const refresh = { grant_type: 'refresh_token', client_id: consoleClientId, refresh_token: refreshToken };
  t.match(await requestToken(first, refresh), { status: 200, body: { refresh_token: /./ } });

  const fixed = { status: 400, body: { error_code: 'validation_failed', msg: /built in/ } };
  for (const id of [consoleClientId, cliClientId]) {
    const body = { redirect_uris: ['https://evil.example/'] };
    t.match(await first.call('PUT', `${path}/${id}`, { token, body }), fixed);
    t.match(await first.call('DELETE', `${path}/${id}`, { token }), fixed);
  }

  await (await start(enabled)).stop();
  t.match(await listClients(server), [{ disabled: true }, { disabled: true, redirect_uris: [] }]);
  t.match(await server.call('GET', '/admin/users', asUser), {
    status: 403,
    body: { error_code: 'session_not_found' },
  });
  t.same(await verify(), { valid: false, code: 'session_not_found' });
  const { text } = await server.call('GET', '/admin/audit?kind=command_line', { token });
  // Parsed boundary: members that the test uses.
  const entries = JSON.parse(text) as { payload: Readonly<Record<string, unknown>> }[];
  const actions = entries.map(({ payload }) => `${payload.actor_username}: ${payload.action}`);
  t.same(actions.toSorted(compareText), [
    ...['settings: oauth_client_created', 'settings: oauth_client_created'],
    ...['settings: oauth_client_updated', 'settings: oauth_client_updated'],
  ]);

  // GoTrue, to which the database was given back, deletes a client in this way.
  const sql = postgres(databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  await sql`update auth.oauth_clients set deleted_at = now() where id = ${consoleClientId}`;
  await start({ ...both, OAUTH_SERVER_CONSOLE_URL: 'http://localhost:8090/console' });
  t.match(await listClients(server), [
    cliClient,
    {
      redirect_uris: ['http://localhost:8090/console/callback'],
      post_logout_redirect_uris: ['http://localhost:8090/console/'],
    },
  ]);
});

t.test('settings that cannot be are rejected', (t) => {
  const base = {
    DATABASE_URL: 'postgres://localhost/x',
    SVC_DB_DRIVER: 'postgres',
    SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_SITE_URL: 'https://example.com',
  };
  const problems = (variables: Readonly<Record<string, string>>): readonly string[] => {
    const read = readSettings({ ...base, ...variables });
    return read.ok ? [] : read.problems.map(({ variable }) => variable);
  };
  const server = { SVC_OAUTH_SERVER_ENABLED: 'true', SVC_PAGES_ENABLED: 'true' };
  const urls: readonly string[] = [
    ...[
      'console.example.com',
      'http://console.example.com',
      'https://a.example/?x=1',
      'https://a.example/#x',
    ],
    ...['javascript:alert(1)', 'https://u:p@a.example', 'https://a.example/,b', 'https://a.example/ b'],
  ];
  for (const url of urls)
    t.same(problems({ ...server, SVC_OAUTH_SERVER_CONSOLE_URL: url }), ['SVC_OAUTH_SERVER_CONSOLE_URL'], url);
  for (const url of ['https://a.example', 'http://localhost:3000', 'http://[::1]:80/console/'])
    t.same(problems({ ...server, SVC_OAUTH_SERVER_CONSOLE_URL: url }), [], url);
  t.same(problems({ SVC_OAUTH_SERVER_CONSOLE_URL: consoleUrl }), ['SVC_OAUTH_SERVER_ENABLED']);
  t.same(problems({ SVC_OAUTH_SERVER_CLI_ENABLED: 'true' }), [
    'SVC_OAUTH_SERVER_ENABLED',
    'SVC_PAGES_ENABLED',
  ]);
  t.end();
});
