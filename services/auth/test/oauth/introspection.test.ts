// Whether a token is valid, and its end.
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import {
  authorizationServer,
  authorize,
  createApplication,
  createMachine,
  machineToken,
  redeem,
  requestToken,
  type ShownClient,
} from '../helpers/oauth-clients.ts';

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
