import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { type Edge, startEdge, whoami } from './support/edge.ts';
import { identityRateLimits } from './support/envoy-config.ts';
import { type AuthProcess, startAuth, startAuthDatabase, startLimits } from './support/processes.ts';
import { getStatuses } from './support/requests.ts';

t.test('requests during faults of the auth server', async (t) => {
  const databaseUrl = await startAuthDatabase(t);
  // Users sign in and out here; Envoy asks the other one, which learns of it from the database
  // alone.
  const auth = await startAuth(t, databaseUrl);
  const checkedServer = await startAuth(t, databaseUrl, {
    // Without notifications the cache outlives this test.
    SVC_EXT_AUTHZ_MAX_STALENESS: '1h',
  });
  const edge = await startPlatform(t, checkedServer);
  const url = edge.url('ingress');

  await t.test('no request passes without it, and all pass once it is back', async (t) => {
    const ada = await auth.signUp('ada@example.com');
    t.same(await getStatuses(url, ada.accessToken, 2), [200, 200]);
    const passed = edge.echo.requests.length;

    await checkedServer.kill();
    t.same(await getStatuses(url, ada.accessToken, 5), [503, 503, 503, 503, 503]);
    t.same(await getStatuses(url, undefined, 2), [503, 503]);
    t.equal(edge.echo.requests.length, passed, 'the application saw nothing of it');

    await checkedServer.restart();
    await awaitStatus(url, ada.accessToken, 200);
    t.same(await getStatuses(url, undefined, 1), [401]);
  });

  await t.test('a session that ended at another server is rejected', async (t) => {
    const ben = await auth.signUp('ben@example.com');
    t.same(await getStatuses(url, ben.accessToken, 2), [200, 200]);
    await auth.signOut(ben.accessToken);
    await awaitStatus(url, ben.accessToken, 401);
    t.same(await getStatuses(url, ben.accessToken, 2), [401, 401]);
  });

  await t.test('a user banned at another server is rejected until the ban is lifted', async (t) => {
    const cleo = await auth.signUp('cleo@example.com');
    t.same(await getStatuses(url, cleo.accessToken, 2), [200, 200]);
    await auth.change(cleo.userId, { ban_duration: '24h' });
    await awaitStatus(url, cleo.accessToken, 403);
    await auth.change(cleo.userId, { ban_duration: 'none' });
    await awaitStatus(url, cleo.accessToken, 200);
  });

  await t.test('identity comes from the token, whatever headers a client sends', async (t) => {
    const dora = await auth.signUp('dora@example.com');
    const { userId, role, plan } = await whoami(url, dora.accessToken, {
      'x-auth-user-id': 'another-user',
      'x-auth-role': 'admin',
      'x-auth-plan': 'pro',
    });
    t.same({ userId, role, plan }, { userId: dora.userId, role: 'authenticated', plan: 'free' });
    t.same(
      await getStatuses(url, `${dora.accessToken.slice(0, -4)}AAAA`, 1),
      [401],
      'a token that was tampered with',
    );
  });
});

async function startPlatform(t: Test, checkedServer: AuthProcess): Promise<Edge> {
  const { limiter } = await startLimits(t, { requestsPerYear: 1000 });
  return startEdge(t, {
    limiters: { ports: [limiter.grpcPort] },
    listeners: [{ name: 'ingress', failureModeDeny: true }],
    extAuthz: { ports: [checkedServer.extAuthzPort] },
    rateLimits: identityRateLimits,
  });
}

function awaitStatus(url: string, accessToken: string, status: number): Promise<unknown> {
  return awaitUntil(async () => (await getStatuses(url, accessToken, 1))[0] === status, {
    what: `an answer of ${status}`,
    everyMs: 50,
  });
}
