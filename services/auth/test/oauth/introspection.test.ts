// Whether a token is valid, and its end.
import { text } from 'node:stream/consumers';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startWebServer } from '@tollgate/testkit/web-server';
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import {
  authorizationServer,
  authorize,
  checkRequest,
  createApplication,
  createMachine,
  machineToken,
  redeem,
  requestToken,
  type ShownClient,
} from '../helpers/oauth-clients.ts';
import { privateKeys } from '../helpers/signing-keys.ts';

async function start(t: Test) {
  const server = await startAuthServer(t, authorizationServer);
  const [client, user] = [await createApplication(server), await signUp(server)];
  const code = await authorize(server, user.accessToken, { client_id: client.client_id });
  const { body } = await redeem(server, client, code);
  const tokens = { access: String(body.access_token), refresh: String(body.refresh_token) };
  return { server, client, user, tokens };
}

function send(server: AuthServer, path: 'introspect' | 'revoke', client: ShownClient, token: string) {
  const body = { client_id: client.client_id, client_secret: client.client_secret, token };
  return server.call('POST', `/oauth/${path}`, { body });
}

async function isActive(server: AuthServer, client: ShownClient, token: string): Promise<unknown> {
  return (await send(server, 'introspect', client, token)).body.active;
}

t.test('a client reads its own tokens, and no others', async (t) => {
  const { server, client, user, tokens } = await start(t);
  t.match((await send(server, 'introspect', client, tokens.access)).body, {
    active: true,
    token_type: 'Bearer',
    client_id: client.client_id,
    scope: 'email',
    sub: user.userId,
    exp: Number,
  });
  t.match((await send(server, 'introspect', client, tokens.refresh)).body, { active: true, scope: 'email' });
  const other = await createApplication(server);
  for (const token of [tokens.access, tokens.refresh, user.accessToken, user.refreshToken, 'x', 'a.b.c'])
    t.strictSame((await send(server, 'introspect', other, token)).body, { active: false });
  t.equal(await isActive(server, client, user.accessToken), false, 'a session of the user');
  server.clock.advance(3_600_000);
  t.equal(await isActive(server, client, tokens.access), false, 'expired');
});

t.test('a resource reads the tokens that are for it', async (t) => {
  const { server } = await start(t);
  const audience = 'https://orders.example.com';
  const machine = await createMachine(server, { audiences: [audience] });
  const token = await machineToken(server, machine);
  const resource = await createMachine(server, { audiences: [audience] });
  t.match((await send(server, 'introspect', resource, token)).body, { active: true, aud: audience });
  t.equal(await isActive(server, await createMachine(server), token), false);
  const path = `/admin/oauth/clients/${machine.client_id}/regenerate_secret`;
  await server.call('POST', path, { token: adminToken() });
  t.equal(await isActive(server, resource, token), false, 'its credentials were replaced');
});

t.test('callers authenticate, and public clients do not introspect', async (t) => {
  const { server, client, tokens } = await start(t);
  for (const path of ['introspect', 'revoke'] as const) {
    const wrong = await send(server, path, { ...client, client_secret: 'wrong' }, tokens.access);
    t.match(wrong, { status: 401, body: { error: 'invalid_client' } });
    t.match(await send(server, path, client, ''), { status: 400, body: { error: 'invalid_request' } });
  }
  const { client_id } = await createApplication(server, { token_endpoint_auth_method: 'none' });
  const open = { body: { client_id, token: tokens.access } };
  t.match(await server.call('POST', '/oauth/introspect', open), { status: 400 });
});

t.test('either token ends the session, for its client only', async (t) => {
  for (const kind of ['access', 'refresh'] as const) {
    const { server, client, user, tokens } = await start(t);
    const other = await createApplication(server);
    t.equal((await send(server, 'revoke', other, tokens[kind])).status, 200);
    t.equal(await isActive(server, client, tokens.access), true, 'another client');
    t.equal((await send(server, 'revoke', client, user.refreshToken)).status, 200);
    t.equal((await server.call('GET', '/user', { token: user.accessToken })).status, 200);

    t.match(await send(server, 'revoke', client, tokens[kind]), { status: 200, text: '{}' });
    t.equal(await isActive(server, client, tokens.access), false, kind);
    const { client_id, client_secret } = client;
    const refreshed = await requestToken(server, {
      grant_type: 'refresh_token',
      refresh_token: tokens.refresh,
      client_id,
      client_secret,
    });
    t.match(refreshed, { status: 400, body: { error: 'invalid_grant' } });
    t.equal((await send(server, 'revoke', client, tokens[kind])).status, 200, 'again');
  }
});

t.test('a refresh token that was used, and those of a banned user, end the session', async (t) => {
  const { server, client, user, tokens } = await start(t);
  const { client_id, client_secret } = client;
  const refresh = (refresh_token: string) =>
    requestToken(server, { grant_type: 'refresh_token', refresh_token, client_id, client_secret });
  const next = String((await refresh(tokens.refresh)).body.refresh_token);
  t.equal(await isActive(server, client, tokens.refresh), false, 'it was used');
  t.equal((await send(server, 'revoke', client, tokens.refresh)).status, 200);
  t.match(await refresh(next), { status: 400, body: { error: 'invalid_grant' } });

  for (const kind of ['access', 'refresh'] as const) {
    const code = await authorize(server, user.accessToken, { client_id });
    const { body } = await redeem(server, client, code);
    const ban = (ban_duration: string) =>
      server.call('PUT', `/admin/users/${user.userId}`, { token: adminToken(), body: { ban_duration } });
    await ban('1h');
    t.equal(await isActive(server, client, String(body[`${kind}_token`])), false, 'banned');
    t.equal((await send(server, 'revoke', client, String(body[`${kind}_token`]))).status, 200);
    await ban('none');
    t.match(await refresh(String(body.refresh_token)), { body: { error: 'invalid_grant' } }, kind);
  }
});

t.test('a client gets a logout token when its session has ended, whatever has ended it', async (t) => {
  const received: string[] = [];
  let status = 204;
  const { port } = await startWebServer(t, (request, response) => {
    void text(request).then((form) => {
      received.push(new URLSearchParams(form).get('logout_token') ?? '');
      response.writeHead(status).end();
    });
  });
  const server = await startAuthServer(t, {
    ...authorizationServer,
    OAUTH_SERVER_PRIVATE_HOSTS: '127.0.0.1',
    JWT_KEYS: privateKeys,
  });
  const uri = { backchannel_logout_uri: `http://127.0.0.1:${port}/logout` };
  const client = await createApplication(server, uri);
  const { client_id } = client;
  const { accessToken: token, userId } = await signUp(server);
  const { body: keys } = await server.call('GET', '/.well-known/jwks.json');
  const keySet = createLocalJWKSet(keys as unknown as JSONWebKeySet);
  /** Starts a session of the client, and returns its id. */
  const signIn = async (at = client) => {
    const code = await authorize(server, token, { client_id: at.client_id, scope: 'openid' });
    return String(decodeJwt(String((await redeem(server, at, code)).body.id_token)).sid);
  };
  const awaitTokens = (count: number) =>
    awaitUntil(() => received.length === count, { what: `${count} logout tokens` });

  const silent = await createApplication(server);
  const [sid] = [await signIn(), await signIn(silent)];
  for (const id of [client_id, silent.client_id])
    await server.call('DELETE', `/user/oauth/grants?client_id=${id}`, { token });
  await awaitTokens(1);
  const [logoutToken = ''] = received;
  const { payload } = await jwtVerify(logoutToken, keySet, {
    ...{ issuer: 'http://localhost:9999', audience: client_id, typ: 'logout+jwt' },
    currentDate: new Date(server.clock.nowMs()),
  });
  t.match(payload, { sub: userId, sid, jti: String, exp: Number(payload.iat) + 120 });
  t.same(payload.events, { 'http://schemas.openid.net/event/backchannel-logout': {} });
  t.notOk('nonce' in payload, 'it is no ID token');
  t.equal((await checkRequest(server, logoutToken)).status, 401, 'nor an access token');

  status = 500;
  const later = await signIn();
  await server.call('POST', '/logout?scope=others', { token });
  await awaitTokens(2);
  status = 400;
  await awaitUntil(() => server.logs().includes('failed to deliver event'), { what: 'the failure' });
  server.clock.advance(5_000);
  await awaitTokens(3);
  const [second, third] = received.slice(1).map((one) => decodeJwt(one));
  t.match([second?.sid, third?.sid], [later, later], 'again');
  t.not(second?.jti, third?.jti);
  await awaitUntil(() => server.logs().includes('client refused logout token'), { what: 'the refusal' });

  const last = await signIn();
  await server.call('DELETE', `/admin/users/${userId}`, { token: adminToken() });
  await awaitTokens(4);
  t.equal(decodeJwt(received[3] ?? '').sid, last, 'a refused token is not sent again');
  for (const wrong of ['http://app.example.org/logout', 'https://10.0.0.1/logout', 'ftp://a.example']) {
    const members = { redirect_uris: [uri.backchannel_logout_uri], backchannel_logout_uri: wrong };
    const answer = await server.call('POST', '/admin/oauth/clients', { token: adminToken(), body: members });
    t.match(answer, { status: 400, body: { msg: /backchannel_logout_uri/ } }, wrong);
  }
});

t.test('neither a session whose logout token fails nor a slow client delays others', async (t) => {
  const received: string[] = [];
  const held: (() => void)[] = [];
  let failing: string | undefined;
  const { port } = await startWebServer(t, (request, response) => {
    void text(request).then((form) => {
      const sid = String(decodeJwt(new URLSearchParams(form).get('logout_token') ?? '').sid);
      received.push(sid);
      if (sid === failing) response.writeHead(500).end();
      else held.push(() => response.writeHead(204).end());
    });
  });
  const server = await startAuthServer(t, {
    ...authorizationServer,
    OAUTH_SERVER_PRIVATE_HOSTS: '127.0.0.1',
    JWT_KEYS: privateKeys,
  });
  const members = { backchannel_logout_uri: `http://127.0.0.1:${port}/logout` };
  const [slow, other] = [await createApplication(server, members), await createApplication(server, members)];
  const { accessToken: token } = await signUp(server);
  const signIn = async (client: ShownClient) => {
    const code = await authorize(server, token, { client_id: client.client_id, scope: 'openid' });
    return String(decodeJwt(String((await redeem(server, client, code)).body.id_token)).sid);
  };
  const endSessions = ({ client_id }: ShownClient) =>
    server.call('DELETE', `/user/oauth/grants?client_id=${client_id}`, { token });
  const awaitTokens = (...sids: readonly string[]) =>
    awaitUntil(() => sids.every((sid) => received.includes(sid)), { what: `${sids.length} logout tokens` });

  const unanswered = await signIn(slow);
  await endSessions(slow);
  await awaitTokens(unanswered);
  failing = await signIn(other);
  await endSessions(other);
  await awaitUntil(() => server.logs().includes('failed to deliver event'), { what: 'the failure' });
  const both = [await signIn(other), await signIn(other)];
  await endSessions(other);
  await awaitTokens(...both);
  t.equal(held.length, 3, 'at once: none has been answered');
  for (const answer of held) answer();
});
