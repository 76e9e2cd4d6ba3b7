// Two servers on one database take turns: OAuth clients.
import t from 'tap';
import { signUp } from '../../helpers/auth-server.ts';
import {
  authorizationServer,
  createApplication,
  redeem,
  redirectParameter,
  requestToken,
  startAuthorization,
} from '../../helpers/oauth-clients.ts';
import { type Flow, runInTurns, startServerPair } from '../../helpers/two-servers.ts';

const flows: Readonly<Record<string, Flow>> = {
  'OAuth client': async (t, next, email) => {
    const client = await createApplication(next());
    const { accessToken: token } = await signUp(next(), { email });
    const path = `/oauth/authorizations/${await startAuthorization(next(), { client_id: client.client_id })}`;
    t.match(await next().call('GET', path, { token }), { status: 200, body: { scope: 'email' } });
    const approved = await next().call('POST', `${path}/consent`, { token, body: { action: 'approve' } });
    const code = redirectParameter(approved.body.redirect_url, 'code');
    const { body } = await redeem(next(), client, code);
    t.type(body.access_token, 'string');
    t.match(await redeem(next(), client, code), { status: 400 }, 'a second use');
  },
  'tokens of an OAuth client': async (t, next, email) => {
    const client = await createApplication(next());
    const { accessToken: token } = await signUp(next(), { email });
    const path = `/oauth/authorizations/${await startAuthorization(next(), { client_id: client.client_id })}`;
    await next().call('GET', path, { token });
    const approved = await next().call('POST', `${path}/consent`, { token, body: { action: 'approve' } });
    const first = await redeem(next(), client, redirectParameter(approved.body.redirect_url, 'code'));
    const { client_id, client_secret } = client;
    const credentials = { client_id, client_secret, grant_type: 'refresh_token' };
    const form = { ...credentials, refresh_token: String(first.body.refresh_token) };
    const second = await requestToken(next(), form);
    t.equal(second.status, 200);
    const grants = await next().call('GET', '/user/oauth/grants', { token });
    t.match(JSON.parse(grants.text), [{ client: { id: client_id } }]);
    const revoked = await next().call('DELETE', `/user/oauth/grants?client_id=${client_id}`, { token });
    t.equal(revoked.status, 204);
    const last = { ...credentials, refresh_token: String(second.body.refresh_token) };
    t.match(await requestToken(next(), last), { status: 400 });
  },
};

t.test('each server continues what the other one began', async (t) => {
  await runInTurns(t, await startServerPair(t, authorizationServer), flows);
});
