// Services exchange the tokens of users for tokens of other services.
import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import {
  applicationUri,
  authorizationServer,
  authorize,
  checkRequest,
  createApplication,
  createMachine,
  machineToken,
  redeem,
  requestToken,
} from '../helpers/oauth-clients.ts';

const grant = 'urn:ietf:params:oauth:grant-type:token-exchange';
const accessTokenUrn = 'urn:ietf:params:oauth:token-type:access_token';
const [shop, stock] = ['https://shop.example', 'https://stock.example'];

const server = await startAuthServer(t, authorizationServer);
const { accessToken, userId } = await signUp(server);
const members = { grant_types: [grant], scopes: ['stock:read', 'stock:write'] };
const service = await createMachine(server, { ...members, audiences: [shop, stock] });
const { client_id: id, client_secret: secret } = service;

const exchange = (form: Readonly<Record<string, string>> = {}, client = service) => {
  const { client_id, client_secret } = client;
  const subject = { subject_token: accessToken, subject_token_type: accessTokenUrn, audience: stock };
  return requestToken(server, { grant_type: grant, client_id, client_secret, ...subject, ...form });
};
const claimsOf = (token: unknown): Readonly<Record<string, unknown>> =>
  JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString());

t.test('a service gets a token of the user for another service, with fewer scopes', async (t) => {
  const { status, body, text } = await exchange({ scope: 'stock:read' });
  t.equal(status, 200, text);
  t.match(body, { issued_token_type: accessTokenUrn, token_type: 'Bearer', scope: 'stock:read' });
  t.notOk('refresh_token' in body);
  const claims = claimsOf(body.access_token);
  t.match(claims, { sub: userId, aud: stock, client_id: id, scope: 'stock:read', act: { sub: id } });
  t.ok(Number(claims.exp) <= Number(claimsOf(accessToken).exp), 'it does not outlive the first');
  const token = String(body.access_token);
  const checked = await checkRequest(server, token);
  t.equal(checked.headers.get('x-auth-user-id'), userId);
  t.equal(checked.headers.get('x-auth-client-id'), id);
  t.equal(checked.headers.get('x-auth-scope'), 'stock:read');
  t.match(await server.call('GET', '/user', { token }), { status: 403 }, 'not in the API of the auth server');
  t.match(await server.call('GET', '/oauth/userinfo', { token }), { status: 403 });

  const audit = await server.call('GET', `/admin/audit?action=token_exchanged`, { token: adminToken() });
  t.match(audit.body, [
    { payload: { actor_id: userId, traits: { client_id: id, audience: stock, scope: 'stock:read' } } },
  ]);

  const second = await createMachine(server, { ...members, audiences: [stock, shop] });
  const chained = await exchange({ subject_token: token, audience: shop }, second);
  t.match(claimsOf(chained.body.access_token), {
    scope: 'stock:read',
    act: { sub: second.client_id, act: { sub: id } },
  });
  const outsider = await createMachine(server, { ...members, audiences: [shop] });
  t.match(await exchange({ subject_token: token, audience: shop }, outsider), {
    body: { error: 'invalid_request' },
  });
});

t.test('a token of an application is narrowed to its scopes and its audience', async (t) => {
  const application = await createApplication(server, { scopes: ['stock:read'] });
  const asked = { client_id: application.client_id, scope: 'email stock:read', resource: shop };
  const code = await authorize(server, accessToken, { ...asked, redirect_uri: applicationUri });
  const { body: tokens } = await redeem(server, application, code);
  const subject = { subject_token: String(tokens.access_token) };
  t.match((await exchange(subject)).body, { scope: 'stock:read' });
  t.match((await exchange({ ...subject, scope: 'stock:write' })).body, { error: 'invalid_scope' });
  const other = await createMachine(server, { ...members, audiences: [stock] });
  t.match((await exchange(subject, other)).body, { error: 'invalid_request' }, 'it is for another resource');
});

t.test('what cannot be exchanged is refused', async (t) => {
  const machine = await createMachine(server, { grant_types: ['client_credentials', grant] });
  const cases = {
    'no subject token': [{ subject_token: '' }, 'invalid_request'],
    'no type': [{ subject_token_type: '' }, 'invalid_request'],
    'an ID token': [{ subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }, 'invalid_request'],
    'a refresh token to be issued': [
      { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
      'invalid_request',
    ],
    'an actor token': [{ actor_token: accessToken }, 'invalid_request'],
    'a changed token': [{ subject_token: `${accessToken}x` }, 'invalid_request'],
    'a token of a machine': [{ subject_token: await machineToken(server, machine) }, 'invalid_request'],
    'another audience': [{ audience: 'https://other.example' }, 'invalid_target'],
    'no audience': [{ audience: '' }, 'invalid_target'],
    'two audiences': [{ resource: shop }, 'invalid_target'],
    'another scope': [{ scope: 'admin' }, 'invalid_scope'],
  } as const;
  for (const [name, [form, error]] of Object.entries(cases))
    t.match(await exchange(form), { status: 400, body: { error } }, name);
  t.match((await exchange({}, await createMachine(server))).body, { error: 'unauthorized_client' });
});

t.test('introspection responds with a signed JWT to clients that ask for it', async (t) => {
  const { body } = await exchange();
  const form = { client_id: id, client_secret: secret, token: String(body.access_token) };
  const { text, headers } = await server.call('POST', '/oauth/introspect', {
    body: new URLSearchParams(form).toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/token-introspection+jwt',
    },
  });
  t.match(headers.get('content-type'), /^application\/token-introspection\+jwt/);
  t.equal(decodeProtectedHeader(text).typ, 'token-introspection+jwt');
  t.match(claimsOf(text), {
    iss: 'http://localhost:9999',
    aud: id,
    token_introspection: { active: true, sub: userId, client_id: id },
  });
  t.equal((await checkRequest(server, text)).status, 401, 'it is no access token');
});

t.test('the end of the session ends exchanged tokens', async (t) => {
  const { body } = await exchange();
  await server.call('POST', '/logout', { token: accessToken });
  t.equal((await checkRequest(server, String(body.access_token))).status, 401);
  t.match((await exchange()).body, { error: 'invalid_request' });
});
