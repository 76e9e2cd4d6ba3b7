// Authorization requests that are pushed, and access tokens of the type at+jwt.
import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import { type Answer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import {
  applicationUri,
  authorizationServer,
  authorize,
  checkRequest,
  createApplication,
  createMachine,
  machineToken,
  openAuthorize,
  pkce,
  redeem,
  redirectParameter,
} from '../helpers/oauth-clients.ts';

const server = await startAuthServer(t, authorizationServer);
const { accessToken } = await signUp(server);
const client = await createApplication(server, {
  require_pushed_authorization_requests: true,
  access_token_typ: 'at+jwt',
});
const { client_id: clientId, client_secret: secret } = client;

const push = (parameters: Readonly<Record<string, string>> = {}): Promise<Answer> => {
  const request = { response_type: 'code', redirect_uri: applicationUri, state: 'a state' };
  const challenge = { code_challenge: pkce.challenge, code_challenge_method: 'S256' };
  const all = { client_id: clientId, client_secret: secret, ...request, ...challenge, ...parameters };
  return server.call('POST', '/oauth/par', {
    body: new URLSearchParams(all).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
};
const open = (requestUri: unknown, id = clientId): Promise<Answer> => {
  const query = new URLSearchParams({ client_id: id, request_uri: String(requestUri), scope: 'phone' });
  return server.call('GET', `/oauth/authorize?${query}`);
};

t.test('a pushed request is opened once, with its own parameters', async (t) => {
  const pushed = await push({ scope: 'openid email' });
  t.match(pushed, {
    status: 201,
    body: { request_uri: /^urn:ietf:params:oauth:request_uri:/, expires_in: 90 },
  });
  const opened = await open(pushed.body.request_uri);
  t.equal(opened.status, 302, opened.text);
  const id = redirectParameter(opened.headers.get('location'), 'authorization_id');
  const path = `/oauth/authorizations/${id}`;
  t.match((await server.call('GET', path, { token: accessToken })).body, { scope: 'openid email' });
  const decision = { token: accessToken, body: { action: 'approve' } };
  const { body } = await server.call('POST', `${path}/consent`, decision);
  t.equal(redirectParameter(body.redirect_url, 'state'), 'a state');
  const tokens = await redeem(server, client, redirectParameter(body.redirect_url, 'code'));
  t.equal(tokens.status, 200, tokens.text);
  t.match(await open(pushed.body.request_uri), { status: 400, body: { msg: /used before/ } });

  const token = String(tokens.body.access_token);
  t.equal(decodeProtectedHeader(token).typ, 'at+jwt');
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  t.match(claims, { iss: 'http://localhost:9999', jti: /-/, client_id: clientId, scope: 'openid email' });
  t.equal((await checkRequest(server, token)).status, 200, 'the gateway accepts it');
});

t.test('requests that are not pushed, and pushed ones with mistakes, are refused', async (t) => {
  const sent = await openAuthorize(server, { client_id: clientId });
  t.equal(redirectParameter(sent.headers.get('location'), 'error'), 'invalid_request');
  const cases = {
    'another redirect_uri': [{ redirect_uri: 'https://evil.example/' }, 'invalid_request'],
    'no PKCE': [{ code_challenge: '' }, 'invalid_request'],
    'an unknown scope': [{ scope: 'x' }, 'invalid_scope'],
    'a request_uri': [{ request_uri: 'urn:ietf:params:oauth:request_uri:x' }, 'request_uri_not_supported'],
    'a wrong secret': [{ client_secret: 'x' }, 'invalid_client'],
  } as const;
  for (const [name, [parameters, error]] of Object.entries(cases))
    t.match((await push(parameters)).body, { error }, name);
  const { body } = await push();
  const other = await createApplication(server);
  t.match(await open(body.request_uri, other.client_id), { status: 400, body: { msg: /client_id/ } });
  const late = await push();
  server.clock.advance(91_000);
  t.match(await open(late.body.request_uri), { status: 400, body: { msg: /expired/ } });
  t.equal((await open('urn:ietf:params:oauth:request_uri:x')).status, 400);
  const metadata = await server.call('GET', '/.well-known/oauth-authorization-server');
  t.match(metadata.body, { pushed_authorization_request_endpoint: 'http://localhost:9999/oauth/par' });
});

t.test('other clients are as before, and machine clients get at+jwt, too', async (t) => {
  const other = await createApplication(server);
  const code = await authorize(server, accessToken, { client_id: other.client_id });
  const { body } = await redeem(server, other, code);
  t.equal(decodeProtectedHeader(String(body.access_token)).typ, 'JWT');
  const machine = await createMachine(server, { access_token_typ: 'at+jwt' });
  const token = await machineToken(server, machine);
  t.equal(decodeProtectedHeader(token).typ, 'at+jwt');
  t.equal((await checkRequest(server, token)).status, 200);
});
