// Two servers on one database, as in a canary: each step of a flow may reach either of them.
import { Secret, TOTP } from 'otpauth';
import type { Test } from 'tap';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';

const token = adminToken();
const password = 'correct horse';

/** The server of the next step. */
type NextServer = () => AuthServer;

const flows: Readonly<Record<string, (t: Test, next: NextServer, email: string) => Promise<void>>> = {
  'sign-up, password and refresh': async (t, next, email) => {
    const { refreshToken } = await signUp(next(), { email });
    const body = { refresh_token: refreshToken };
    const refreshed = signedIn(await next().call('POST', '/token?grant_type=refresh_token', { body }));
    t.equal((await next().call('GET', '/user', { token: refreshed.accessToken })).status, 200);
    const again = { refresh_token: refreshed.refreshToken };
    signedIn(await next().call('POST', '/token?grant_type=refresh_token', { body: again }));
    signedIn(await next().call('POST', '/token?grant_type=password', { body: { email, password } }));
  },
  'code and link of a recovery': async (t, next, email) => {
    await signUp(next(), { email });
    const generate = () =>
      next().call('POST', '/admin/generate_link', { token, body: { type: 'recovery', email } });
    const { body } = await generate();
    const byCode = { type: 'recovery', email, token: body.email_otp };
    const { accessToken } = signedIn(await next().call('POST', '/verify', { body: byCode }));
    t.equal((await next().call('POST', '/verify', { body: byCode })).status, 403, 'once');
    const changed = { password: 'better horse' };
    t.equal((await next().call('PUT', '/user', { token: accessToken, body: changed })).status, 200);
    const link = { type: 'recovery', token_hash: (await generate()).body.hashed_token };
    signedIn(await next().call('POST', '/verify', { body: link }));
  },
  'second factor': async (t, next, email) => {
    const { accessToken } = await signUp(next(), { email });
    const enrolled = await next().call('POST', '/factors', {
      token: accessToken,
      body: { factor_type: 'totp' },
    });
    // Parsed boundary: the form of an enrolment, as the tests of the client library prove.
    const { id, totp } = enrolled.body as { id: string; totp: { secret: string } };
    const challenge = await next().call('POST', `/factors/${id}/challenge`, { token: accessToken });
    const server = next();
    const code = TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() });
    const body = { challenge_id: challenge.body.id, code };
    const raised = signedIn(await server.call('POST', `/factors/${id}/verify`, { token: accessToken, body }));
    t.match(await next().call('GET', '/user', { token: raised.accessToken }), {
      body: { factors: [{ id, status: 'verified' }] },
    });
    const removed = await next().call('DELETE', `/factors/${id}`, { token: raised.accessToken });
    t.equal(removed.status, 200);
  },
  'changes by an administrator, and deletion': async (t, next, email) => {
    const { userId, accessToken } = await signUp(next(), { email });
    const path = `/admin/users/${userId}`;
    const changed = await next().call('PUT', path, { token, body: { app_metadata: { plan: 'gold' } } });
    t.match(changed, { body: { app_metadata: { plan: 'gold' } } });
    t.match(await next().call('GET', '/user', { token: accessToken }), {
      body: { app_metadata: { plan: 'gold' } },
    });
    t.equal((await next().call('PUT', path, { token, body: { ban_duration: '1h' } })).status, 200);
    const signIn = { body: { email, password } };
    t.match(await next().call('POST', '/token?grant_type=password', signIn), {
      body: { error_code: 'user_banned' },
    });
    t.equal((await next().call('DELETE', path, { token })).status, 200);
    t.equal((await next().call('GET', path, { token })).status, 404);
  },
};

t.test('each step of a flow can reach either of two servers', async (t) => {
  const first = await startAuthServer(t, { DB_SHARED_WITH_GOTRUE: 'true' });
  const second = await startAuthServer(t, {
    DB_DATABASE_URL: first.databaseUrl,
    SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: '2',
  });
  for (const [name, flow] of Object.entries(flows))
    for (const servers of [
      [first, second],
      [second, first],
    ]) {
      let step = 0;
      const next = () => (step++ % 2 === 0 ? servers[0] : servers[1]) ?? first;
      const email = `${crypto.randomUUID()}@example.com`;
      await t.test(name, async (t) => await flow(t, next, email));
    }
});
