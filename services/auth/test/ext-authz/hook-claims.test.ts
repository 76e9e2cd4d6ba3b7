import type { JsonObject } from '@tollgate/kit/json';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signUp, startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';
import { startHookServer } from '../helpers/hook-server.ts';

/** A user whose token has what the hook sets, and the attributes of each request. */
async function start(t: Test, claims: string) {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', `claims: ${claims}\n`);
  const hook = await startHookServer(t);
  hook.answer((event) => {
    // The event of this hook has claims.
    const own = event.claims as JsonObject;
    return { body: { claims: { ...own, plan: 'gold', region: 'eu' } } };
  });
  const server = await startAuthServer(t, {
    ...hook.variables('CUSTOM_ACCESS_TOKEN'),
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
  });
  const { accessToken, userId } = await signUp(server);
  const client = connectAuthz(t, server.extAuthz.grpc);
  const headers = { authorization: `Bearer ${accessToken}` };
  const attributes = async () =>
    summary(await client.check({ method: 'GET', path: '/', headers })).metadata as JsonObject; // allowed
  const setPlan = (plan: string | null) =>
    server.call('PUT', `/admin/users/${userId}`, { token: adminToken(), body: { app_metadata: { plan } } });
  return { attributes, setPlan };
}

t.test('a claim of a token hook is an attribute by mapping', async (t) => {
  const { attributes } = await start(t, '{ region: region }');
  t.match(await attributes(), { region: 'eu', plan: 'free' });
});

t.test('a stored plan wins over the claim of the hook', async (t) => {
  const { attributes, setPlan } = await start(t, '{ plan: plan }');
  t.match(await attributes(), { plan: 'gold' });
  await setPlan('pro');
  t.match(await attributes(), { plan: 'pro' });
  await setPlan(null);
  t.match(await attributes(), { plan: 'gold' });
});

t.test('with from: token the claim of the hook wins', async (t) => {
  const { attributes, setPlan } = await start(t, '{ plan: { claim: plan, from: token } }');
  await setPlan('pro');
  t.match(await attributes(), { plan: 'gold' });
});
