import t from 'tap';
import { type AuthorizationServer, createAuthorizationServer } from '../../src/testing.ts';

const basic = `Basic ${btoa('client:secret')}`;

/** Body of a response as the test describes it. */
type Body = Record<string, string | undefined>;

async function post(server: AuthorizationServer, url: string, params: Record<string, string | undefined>) {
  const response = await server.fetch(url, {
    method: 'POST',
    headers: { authorization: basic },
    body: new URLSearchParams(JSON.parse(JSON.stringify(params))),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

async function callApi(server: AuthorizationServer, token: string | undefined) {
  return server.fetch(`${server.endpoints.resource}/things`, {
    headers: { authorization: `Bearer ${token}` },
  });
}

t.test(
  'a code is redeemed once, with its verifier, and a second use revokes what the first gave',
  async (t) => {
    const server = createAuthorizationServer();
    const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
    const url = new URL(server.endpoints.authorization);
    url.search = new URLSearchParams({
      ...{ response_type: 'code', client_id: 'client', redirect_uri: 'https://app.test/cb', state: 's' },
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      ...{ code_challenge_method: 'S256', scope: 'openid' },
    }).toString();
    const callback = new URL(await server.authorize(url));
    t.match(Object.fromEntries(callback.searchParams), { state: 's', iss: 'https://as.test' });

    const redeem = {
      ...{ grant_type: 'authorization_code', redirect_uri: 'https://app.test/cb', code_verifier: verifier },
      code: callback.searchParams.get('code') ?? '',
    };
    const first = await post(server, server.endpoints.token, redeem);
    t.match(first, { status: 200, body: { token_type: 'Bearer', expires_in: 3600, id_token: /^ey/ } });
    t.equal((await callApi(server, first.body.access_token)).status, 200);
    t.match(await post(server, server.endpoints.token, redeem), {
      status: 400,
      body: { error: 'invalid_grant' },
    });
    t.equal((await callApi(server, first.body.access_token)).status, 401);
  },
);

t.test('a wrong verifier is rejected', async (t) => {
  const server = createAuthorizationServer();
  const url = `${server.endpoints.authorization}?response_type=code&client_id=client&redirect_uri=https://app.test/&code_challenge=abc`;
  const code = new URL(await server.authorize(url)).searchParams.get('code') ?? '';
  const answer = await post(server, server.endpoints.token, {
    ...{ grant_type: 'authorization_code', code, redirect_uri: 'https://app.test/', code_verifier: 'abd' },
  });
  t.match(answer, { status: 400, body: { error: 'invalid_grant', error_description: /code_verifier/ } });
});

t.test('refresh tokens rotate, and a spent one that returns revokes the grant', async (t) => {
  const server = createAuthorizationServer();
  const start = await server.issueTokens({ scope: 'a b' });
  const refresh = (token: string | undefined) =>
    post(server, server.endpoints.token, { grant_type: 'refresh_token', refresh_token: token ?? '' });
  const first = await refresh(start.refresh_token);
  t.equal(first.status, 200);
  t.not(first.body.refresh_token, start.refresh_token);
  t.match(await refresh(start.refresh_token), { status: 400, body: { error: 'invalid_grant' } });
  t.match(await refresh(first.body.refresh_token), { status: 400, body: { error: 'invalid_grant' } });
  t.notOk(server.isActive(first.body.access_token ?? ''));
});

t.test('tokens expire by the clock of the server', async (t) => {
  const server = createAuthorizationServer({ accessTokenTtlSeconds: 60, now: () => 1_800_000_000 });
  const { access_token: token } = await server.issueTokens({});
  server.advance(59);
  t.equal((await callApi(server, token)).status, 200);
  server.advance(2);
  const response = await callApi(server, token);
  t.equal(response.status, 401);
  t.match(response.headers.get('www-authenticate'), /error="invalid_token"/);
});

t.test('a device polls until the user decides, and slow_down is handled', async (t) => {
  const server = createAuthorizationServer({ now: () => 1_800_000_000 });
  const { body: device } = await post(server, server.endpoints.deviceAuthorization, { scope: 'a' });
  const poll = () =>
    post(server, server.endpoints.token, {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: device.device_code,
    });
  t.match(await poll(), { body: { error: 'authorization_pending' } });
  t.match(await poll(), { body: { error: 'slow_down' } });
  server.decideDevice(device.user_code ?? '');
  t.match(await poll(), { status: 200, body: { scope: 'a', access_token: /^at-/ } });
});

t.test(
  'password, client credentials and token exchange give tokens; introspection and revocation follow them',
  async (t) => {
    const server = createAuthorizationServer();
    const { token, introspection, revocation } = server.endpoints;
    const user = await post(server, token, {
      ...{ grant_type: 'password', username: 'user', password: 'password' },
    });
    t.match(user, { status: 200, body: { refresh_token: /^rt-/ } });
    t.match(await post(server, token, { grant_type: 'password', username: 'user', password: 'no' }), {
      body: { error: 'invalid_grant' },
    });
    const machine = await post(server, token, { grant_type: 'client_credentials', scope: 'x' });
    t.match(machine, { status: 200, body: { scope: 'x' } });
    t.notOk(machine.body.refresh_token);
    const exchanged = await post(server, token, {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: user.body.access_token,
    });
    t.match(await post(server, introspection, { token: exchanged.body.access_token }), {
      body: { active: true, sub: 'user', client_id: 'client' },
    });
    await server.fetch(revocation, {
      method: 'POST',
      headers: { authorization: basic },
      body: new URLSearchParams({ token: exchanged.body.access_token ?? '' }),
    });
    t.match(await post(server, introspection, { token: exchanged.body.access_token }), {
      body: { active: false },
    });
  },
);

t.test('clients must authenticate', async (t) => {
  const server = createAuthorizationServer({
    clients: [
      { clientId: 'public' },
      { clientId: 'secret', clientSecret: 'p@ss:w+rd' },
      { clientId: 'assertion', verifyAssertion: (assertion) => assertion.endsWith('.good') },
    ],
  });
  const statusOf = async (params: Record<string, string>, authorization?: string) => {
    const response = await server.fetch(server.endpoints.introspection, {
      method: 'POST',
      headers: authorization === undefined ? {} : { authorization },
      body: new URLSearchParams({ token: 'x', ...params }),
    });
    return response.status;
  };
  const subject = btoa(JSON.stringify({ sub: 'assertion' }));
  t.equal(await statusOf({ client_id: 'public' }), 200);
  t.equal(await statusOf({ client_id: 'nobody' }), 401);
  t.equal(await statusOf({ client_id: 'secret' }), 401);
  t.equal(await statusOf({ client_id: 'secret', client_secret: 'p@ss:w+rd' }), 200);
  t.equal(await statusOf({}, `Basic ${btoa(`secret:${encodeURIComponent('p@ss:w+rd')}`)}`), 200);
  t.equal(await statusOf({}, `Basic ${btoa('secret:wrong')}`), 401);
  t.equal(await statusOf({ client_id: 'assertion' }), 401);
  t.equal(await statusOf({ client_assertion: `x.${subject}.good` }), 200);
  t.equal(await statusOf({ client_assertion: `x.${subject}.bad` }), 401);
});

t.test('faults refuse, lose, hang, hold and replace responses, as often as given', async (t) => {
  const server = createAuthorizationServer();
  const { refresh_token: refreshToken = '' } = await server.issueTokens({});
  const refresh = () =>
    post(server, server.endpoints.token, { grant_type: 'refresh_token', refresh_token: refreshToken });

  server.inject({ endpoint: 'token', effect: 'refuse', times: 2 });
  await t.rejects(refresh(), TypeError);
  await t.rejects(refresh(), TypeError);
  t.ok(server.isActive(refreshToken), 'nothing was processed');

  server.inject({ endpoint: 'token', effect: 'hang' });
  const giveUp = new AbortController();
  const hanging = server.fetch(server.endpoints.token, { method: 'POST', signal: giveUp.signal });
  giveUp.abort(new Error('enough'));
  await t.rejects(hanging, { message: 'enough' });

  server.inject({ effect: () => new Response('busy', { status: 503, headers: { 'retry-after': '1' } }) });
  t.equal((await server.fetch(server.endpoints.token)).status, 503);

  const gate = Promise.withResolvers<void>();
  server.inject({ endpoint: 'resource', effect: gate.promise });
  const held = server.fetch(server.endpoints.resource);
  gate.resolve();
  t.equal((await held).status, 401);

  server.inject({ endpoint: 'token', effect: 'lose' });
  await t.rejects(refresh(), TypeError);
  t.notOk(server.isActive(refreshToken), 'it was processed');
  t.equal(server.count('token'), 5);
});
