import type { JsonObject } from '@tollgate/kit/json';
import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import { activate, createOrganization, signUpAs, withOrganizations } from '../helpers/organizations.ts';

t.test('an access token cannot be prolonged by switching organizations', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const ada = await signUpAs(server, 'ada');
  const id = await createOrganization(server, ada);
  const { exp = 0 } = decodeJwt(ada.accessToken);
  let caller = ada;
  for (const each of [id, null, id]) {
    server.clock.advance(1000 * 1000);
    const answer = await server.call('POST', '/user/organization', {
      token: caller.accessToken,
      body: { id: each },
    });
    t.match(answer, { status: 200, body: { expires_at: exp } });
    caller = { ...ada, accessToken: String(answer.body.access_token) };
    t.equal(decodeJwt(caller.accessToken).exp, exp);
    t.equal(answer.body.expires_in, exp - Math.floor(server.clock.nowMs() / 1000));
  }
  server.clock.advance(1000 * 1000);
  t.match(await server.call('POST', '/user/organization', { token: caller.accessToken, body: { id } }), {
    status: 403,
    body: { error_code: 'bad_jwt' },
  });
});

t.test('a token does not get the assurance level that its session reached later', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const ada = await signUpAs(server, 'ada');
  const { amr } = decodeJwt(ada.accessToken);
  server.clock.advance(2000);
  const sql = postgres(server.databaseUrl, { max: 1, connection: { search_path: 'auth' } });
  t.teardown(() => sql.end());
  await sql`update sessions set aal = 'aal2'`;
  await sql`insert into mfa_amr_claims (id, session_id, created_at, updated_at, authentication_method)
    select gen_random_uuid(), id, now() + interval '1 hour', now() + interval '1 hour', 'totp' from sessions`;
  const answer = await server.call('POST', '/user/organization', {
    token: ada.accessToken,
    body: { id: null },
  });
  t.match(answer, { status: 200 });
  t.strictSame(
    { amr, aal: 'aal1' },
    (({ amr, aal }) => ({ amr, aal }))(decodeJwt(String(answer.body.access_token))),
  );
});

t.test('a token hook cannot prolong it either, and may shorten it', async (t) => {
  const hook = await startHookServer(t);
  let lifeSeconds = 3600;
  hook.answer((event) => {
    const claims = event.claims as JsonObject; // the event of this hook has claims
    return { body: { claims: { ...claims, exp: Number(claims.iat) + lifeSeconds } } };
  });
  const server = await startAuthServer(t, { ...withOrganizations, ...hook.variables('CUSTOM_ACCESS_TOKEN') });
  const ada = await signUpAs(server, 'ada');
  const id = await createOrganization(server, ada);
  const { exp = 0, iat = 0 } = decodeJwt(ada.accessToken);
  lifeSeconds = 1_000_000;
  t.equal(decodeJwt((await activate(server, ada, id)).accessToken).exp, exp);
  lifeSeconds = 60;
  t.equal(decodeJwt((await activate(server, ada, id)).accessToken).exp, iat + 60);
});

t.test('a session that cannot be refreshed gets no token of an organization', async (t) => {
  const settings: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    timebox: { SESSIONS_TIMEBOX: '10m' },
    inactivity: { SESSIONS_INACTIVITY_TIMEOUT: '10m' },
    'newer sign-in': { SESSIONS_SINGLE_PER_USER: 'true' },
  };
  for (const [what, variables] of Object.entries(settings)) {
    const server = await startAuthServer(t, { ...withOrganizations, ...variables });
    const ada = await signUpAs(server, 'ada');
    const id = await createOrganization(server, ada);
    await activate(server, ada, id);
    server.clock.advance(10 * 60_000);
    const body = { email: 'ada@example.com', password: 'correct horse' };
    t.equal((await server.call('POST', '/token?grant_type=password', { body })).status, 200);
    t.match(
      await server.call('POST', '/user/organization', { token: ada.accessToken, body: { id } }),
      { status: 403, body: { error_code: 'session_expired' } },
      what,
    );
  }
});

t.test('inactivity at the gateway begins with the first token, not with its switches', async (t) => {
  const server = await startAuthServer(t, { ...withOrganizations, SESSIONS_INACTIVITY_TIMEOUT: '10m' });
  const ada = await signUpAs(server, 'ada');
  const id = await createOrganization(server, ada);
  const { iat = 0 } = decodeJwt(ada.accessToken);
  server.clock.advance(9 * 60_000);
  t.equal(decodeJwt((await activate(server, ada, id)).accessToken).exp, iat + 600);
  const refresh = { body: { refresh_token: ada.refreshToken } };
  t.equal((await server.call('POST', '/token?grant_type=refresh_token', refresh)).status, 200);
  server.clock.advance(2 * 60_000);
  t.match(
    await server.call('POST', '/user/organization', { token: ada.accessToken, body: { id } }),
    { status: 403, body: { error_code: 'session_expired' } },
    'an older token of a session that was refreshed',
  );
});
