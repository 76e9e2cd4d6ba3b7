// Rights that scopes cannot express, which a hook checks (RFC 9396).
import { decodeJwt, decodeProtectedHeader } from 'jose';
import postgres from 'postgres';
import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import {
  applicationUri,
  authorize,
  authorizeQuery,
  createApplication,
  createMachine,
  oauthServer,
  openAuthorize,
  redeem,
  redirectParameter,
  requestToken,
  startAuthorization,
} from '../helpers/oauth-clients.ts';

const apiUrl = 'http://localhost:9999';
const ada = { identifier: 'ada@example.com', password: 'correct horse' };
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
const types = {
  payment: { description: { en: 'Make a payment', fr: 'Payer' }, clients: 'all' },
  account: { description: 'See an account' },
};
const payment = (amount: string) => ({ type: 'payment', amount, creditor: { name: '<b>Shop</b>' } });
const json = (...details: readonly object[]) => JSON.stringify(details);

const hook = await startHookServer(t);
const settings = {
  ...oauthServer,
  ...hook.variables('AUTHORIZATION_DETAILS'),
  PAGES_ENABLED: 'true',
  OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
  OAUTH_SERVER_AUTHORIZATION_DETAILS_TYPES: JSON.stringify(types),
};
const server = await startAuthServer(t, settings);
const { accessToken } = await signUp(server);
const client = await createApplication(server);
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const post = (path: string, fields: Readonly<Record<string, string>>) =>
  server.call('POST', path, { body: new URLSearchParams(fields).toString(), headers: form });
const introspect = async (by: typeof client, token: unknown) =>
  (await post('/oauth/introspect', { ...by, token: String(token) })).body;
/** The response of a code for the details. */
const grant = async (by: typeof client, details: string, fields: Readonly<Record<string, string>> = {}) => {
  const request = { client_id: by.client_id, authorization_details: details };
  return redeem(server, by, await authorize(server, accessToken, request), fields);
};

t.test('the hook changes the details, and the user reads what they are for', async (t) => {
  const enriched = { ...payment('12'), currency: 'EUR' };
  hook.answer({
    body: {
      authorization_details: [enriched],
      lines: [{ en: 'Pay 12 € to <b>Shop</b>', fr: 'Payer 12 € à <b>Shop</b>' }, 'Reference 7'],
    },
  });
  const browser = new Browser({ [apiUrl]: server.url });
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const request = { client_id: client.client_id, authorization_details: json(payment('12')) };
  const opened = await browser.open(`${apiUrl}/oauth/authorize?${authorizeQuery(request)}`);
  const page = opened.headers.get('location') ?? '';
  t.match(hook.last(), {
    authorization_details: [payment('12')],
    client: { client_id: client.client_id, client_name: 'Planner', registration_type: 'manual' },
    ...{ grant_type: 'authorization_code', scope: 'email', resource: null },
    metadata: { name: 'authorization-details' },
  });
  const shown = await (await browser.open(page)).text();
  for (const text of ['Make a payment', 'Pay 12 € to &lt;b&gt;Shop&lt;/b&gt;', 'Reference 7'])
    t.match(shown, `<li><bdi>${text}</bdi></li>`);
  const french = await (await browser.open(`${page}&ui_locales=fr`)).text();
  for (const text of ['<bdi>Payer</bdi>', 'Payer 12 € à &lt;b&gt;Shop&lt;/b&gt;']) t.match(french, text);
  const approved = await browser.submit(page, { action: 'approve' }, { target: 'consent' });
  const code = redirectParameter(approved.headers.get('location'), 'code');
  const { body } = await redeem(server, client, code);
  const granted = [enriched];
  t.same(body.authorization_details, granted);
  t.same(decodeJwt(String(body.access_token)).authorization_details, granted);
  for (const token of [body.access_token, body.refresh_token])
    t.same((await introspect(client, token)).authorization_details, granted);
  t.match(await (await browser.open(`${apiUrl}/pages/applications`)).text(), 'Make a payment');
  const exchanged = await requestToken(server, {
    ...{ grant_type: 'refresh_token', refresh_token: String(body.refresh_token), ...client },
    authorization_details: json(payment('12')),
  });
  t.match(exchanged, { status: 400, body: { error: 'invalid_authorization_details' } }, 'not as granted');
});

t.test('tokens have some of the granted details if the client asks to', async (t) => {
  hook.answer({});
  const profile = await createApplication(server, { access_token_typ: 'at+jwt' });
  const [one, two] = [payment('1'), payment('2')];
  const first = await grant(profile, json(one, two), { authorization_details: json(two) });
  t.same(first.body.authorization_details, [two], 'with the code');
  t.equal(decodeProtectedHeader(String(first.body.access_token)).typ, 'at+jwt');
  t.same(decodeJwt(String(first.body.access_token)).authorization_details, [two]);
  let token = String(first.body.refresh_token);
  const refresh = async (details?: string) => {
    const { status, body } = await requestToken(server, {
      ...{ grant_type: 'refresh_token', refresh_token: token, ...profile },
      ...(details !== undefined && { authorization_details: details }),
    });
    token = status === 200 ? String(body.refresh_token) : token;
    const claims = status === 200 ? decodeJwt(String(body.access_token)) : {};
    t.same(claims.authorization_details, body.authorization_details);
    return body.error ?? body.authorization_details;
  };
  t.same(await refresh(json(one)), [one]);
  t.same(await refresh(), [one, two], 'the session keeps all');
  t.equal(await refresh(json(payment('3'))), 'invalid_authorization_details');
  t.equal(await refresh('no JSON'), 'invalid_authorization_details');
  t.same(await refresh(json({ creditor: two.creditor, amount: '2', type: 'payment' })), [two]);
  const plain = await createApplication(server);
  const { body } = await redeem(
    server,
    plain,
    await authorize(server, accessToken, { client_id: plain.client_id }),
  );
  t.notOk('authorization_details' in body);
});

t.test('a consent is remembered for the same details, unless the hook does not want that', async (t) => {
  hook.answer({});
  const known = await createApplication(server);
  const ask = async (...details: readonly object[]) => {
    const request = {
      client_id: known.client_id,
      ...(details.length > 0 && { authorization_details: json(...details) }),
    };
    const path = `/oauth/authorizations/${await startAuthorization(server, request)}`;
    const { body } = await server.call('GET', path, { token: accessToken });
    if (body.redirect_url !== undefined) return 'granted';
    await server.call('POST', `${path}/consent`, { token: accessToken, body: { action: 'approve' } });
    return body.authorization_details ?? 'asked';
  };
  t.equal(await ask(), 'asked');
  t.same(await ask(payment('1')), [payment('1')]);
  t.equal(await ask(payment('1')), 'granted');
  t.same(await ask(payment('1'), payment('2')), [payment('1'), payment('2')]);
  t.equal(await ask(payment('2')), 'granted');
  hook.answer({ body: { remember: false } });
  for (let times = 0; times < 2; times++) t.same(await ask(payment('2')), [payment('2')]);
  hook.answer({});
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const audit =
    await sql`select payload from auth.audit_log_entries where payload::text like '%details_types%'`;
  t.match(audit.at(-1)?.payload, { traits: { authorization_details_types: ['payment'] } });
  await server.call('DELETE', `/user/oauth/grants?client_id=${known.client_id}`, { token: accessToken });
  t.same(await ask(payment('2')), [payment('2')], 'not after the revocation');
});

t.test('details that GoTrue has not shown to the user are not granted', async (t) => {
  hook.answer({});
  const request = { client_id: client.client_id, authorization_details: json(payment('9')) };
  const code = await authorize(server, accessToken, request);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  // An approval by GoTrue leaves the row as it was.
  await sql`update auth.oidc_authorizations set authenticated_at = null, aal = null, methods = null`;
  const { status, body } = await redeem(server, client, code);
  t.equal(status, 200);
  t.notOk('authorization_details' in body);
  t.notOk('authorization_details' in decodeJwt(String(body.access_token)));
});

t.test('pushed requests, devices and machines have details, too', async (t) => {
  hook.answer({});
  const details = json(payment('5'));
  const query = Object.fromEntries(
    authorizeQuery({ client_id: client.client_id, authorization_details: details }),
  );
  const pushed = await post('/oauth/par', { ...query, client_secret: client.client_secret });
  t.equal(pushed.status, 201, pushed.text);
  const opened = await server.call(
    'GET',
    `/oauth/authorize?${new URLSearchParams({ client_id: client.client_id, request_uri: String(pushed.body.request_uri) })}`,
  );
  const id = redirectParameter(opened.headers.get('location'), 'authorization_id');
  const shown = await server.call('GET', `/oauth/authorizations/${id}`, { token: accessToken });
  t.same(shown.body.authorization_details, [payment('5')]);

  const device = await createMachine(server, {
    ...{ grant_types: [deviceGrant, 'refresh_token'], token_endpoint_auth_method: 'none' },
  });
  const { client_id } = device;
  const started = await post('/oauth/device_authorization', { client_id, authorization_details: details });
  t.match(hook.last(), { grant_type: deviceGrant, authorization_details: [payment('5')] });
  const browser = new Browser({ [apiUrl]: server.url });
  await browser.submit(`${apiUrl}/pages/sign-in`, ada);
  const { user_code, device_code } = started.body;
  const entered = await browser.submit(
    `${apiUrl}/pages/device`,
    { user_code: String(user_code) },
    { target: 'device' },
  );
  const page = entered.headers.get('location') ?? '';
  t.match(await (await browser.open(page)).text(), 'Make a payment');
  await browser.submit(page, { action: 'approve' }, { target: 'consent' });
  const polled = await requestToken(server, {
    ...{ grant_type: deviceGrant, client_id, device_code: String(device_code) },
  });
  t.same(polled.body.authorization_details, [payment('5')]);

  const machine = await createMachine(server, { authorization_details_types: ['account'] });
  const credentials = { grant_type: 'client_credentials', ...machine };
  const account = { type: 'account', iban: 'DE00' };
  const token = await requestToken(server, { ...credentials, authorization_details: json(account) });
  t.same(token.body.authorization_details, [account]);
  t.same(decodeJwt(String(token.body.access_token)).authorization_details, [account]);
  t.same((await introspect(machine, token.body.access_token)).authorization_details, [account]);
  t.match(hook.last(), { grant_type: 'client_credentials', scope: '' });
  const refused = { ...credentials, authorization_details: details };
  t.match((await requestToken(server, refused)).body, { error: 'invalid_authorization_details' });
});

t.test('what is malformed, not allowed or rejected by the hook is refused', async (t) => {
  hook.answer({});
  const deep = `[{"type":"payment","x":${'['.repeat(70)}${']'.repeat(70)}}]`;
  const invalid: Readonly<Record<string, string>> = {
    'no JSON': '{',
    'no list': JSON.stringify(payment('1')),
    'no object': '["payment"]',
    'an empty list': '[]',
    'no type': '[{"amount":"1"}]',
    'a type that is no text': '[{"type":7}]',
    'an unknown type': json({ type: 'x' }),
    'an assigned type': json({ type: 'account' }),
    'too many': json(...Array.from({ length: 11 }, () => payment('1'))),
    'too long': json({ type: 'payment', text: 'x'.repeat(4096) }),
    'too deep': deep,
    NUL: '[{"type":"payment","x":"\\u0000"}]',
    'half a character': '[{"type":"payment","x":"\\ud800"}]',
  };
  const before = hook.requests.length;
  const open = async (details: string) => {
    const { headers } = await openAuthorize(server, {
      ...{ client_id: client.client_id, state: 's', authorization_details: details },
    });
    const location = new URL(headers.get('location') ?? '');
    t.ok(location.href.startsWith(applicationUri), 'the client gets the error');
    return ['error', 'error_description'].map((name) => location.searchParams.get(name));
  };
  for (const [name, details] of Object.entries(invalid))
    t.equal((await open(details))[0], 'invalid_authorization_details', name);
  t.equal(hook.requests.length, before, 'the hook is not called');

  hook.answer({ body: { error: { http_code: 400, message: 'amount "1" is too low – really' } } });
  const message = 'amount ?1? is too low ? really';
  t.same(await open(json(payment('1'))), ['invalid_authorization_details', message]);
  const fields = Object.fromEntries(
    authorizeQuery({ client_id: client.client_id, authorization_details: json(payment('1')) }),
  );
  t.match(await post('/oauth/par', { ...fields, client_secret: client.client_secret }), {
    ...{ status: 400, body: { error: 'invalid_authorization_details', error_description: message } },
  });
  const failures = {
    'a failure': { status: 500 },
    'no list': { body: { authorization_details: {} } },
    'no details': { body: { authorization_details: [] } },
    'another type': { body: { authorization_details: [{ type: 'account' }] } },
    'too long': { body: { authorization_details: [{ type: 'payment', x: 'x'.repeat(4096) }] } },
    'a long line': { body: { lines: ['x'.repeat(256)] } },
    'a line that is no text': { body: { lines: [{ en: 7 }] } },
    'a line in no language': { body: { lines: [{}] } },
  };
  for (const [name, answer] of Object.entries(failures)) {
    hook.answer(answer);
    t.equal((await open(json(payment('1'))))[0], 'server_error', name);
  }
});

t.test('clients register types, and the metadata have them', async (t) => {
  const { body } = await server.call('GET', '/.well-known/oauth-authorization-server');
  t.same(body.authorization_details_types_supported, ['payment', 'account']);
  const register = (names: readonly string[]) =>
    server.call('POST', '/oauth/clients/register', {
      body: { redirect_uris: [applicationUri], authorization_details_types: names },
    });
  const registered = await register(['payment', 'account', 'x']);
  t.same(registered.body.authorization_details_types, ['payment'], 'without assigned types');
  t.match(await register(['account']), { status: 400, body: { error: 'invalid_client_metadata' } });
  const path = `/admin/oauth/clients/${client.client_id}`;
  const put = (names: readonly string[]) =>
    server.call('PUT', path, { token: adminToken(), body: { authorization_details_types: names } });
  t.same((await put(['account'])).body.authorization_details_types, ['account']);
  hook.answer({});
  t.equal((await grant(client, json({ type: 'account' }))).status, 200);
  t.equal((await put(['x'.repeat(256)])).status, 400);
});

t.test('types without a hook or the OAuth server prevent the start', (t) => {
  const base = {
    DATABASE_URL: 'postgres://localhost/x',
    SVC_DB_DRIVER: 'postgres',
    SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_SITE_URL: 'https://example.com',
    SVC_OAUTH_SERVER_AUTHORIZATION_DETAILS_TYPES: 'payment',
  };
  const enabled = Object.fromEntries(
    Object.entries(hook.variables('AUTHORIZATION_DETAILS')).map(([name, value]) => [`SVC_${name}`, value]),
  );
  const problems = (variables: Readonly<Record<string, string>>): readonly string[] => {
    const read = readSettings({ ...base, ...variables });
    return read.ok ? [] : read.problems.map(({ variable }) => variable);
  };
  t.same(problems({ SVC_OAUTH_SERVER_ENABLED: 'true' }), ['SVC_HOOK_AUTHORIZATION_DETAILS_ENABLED']);
  t.same(problems(enabled), ['SVC_OAUTH_SERVER_ENABLED']);
  t.same(problems({ ...enabled, SVC_OAUTH_SERVER_ENABLED: 'true' }), []);
  t.same(problems({ SVC_OAUTH_SERVER_AUTHORIZATION_DETAILS_TYPES: '' }), []);
  t.end();
});
