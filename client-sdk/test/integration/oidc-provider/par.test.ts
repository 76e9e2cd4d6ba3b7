import t from 'tap';
import { discoverClient } from '../../../src/discovery.ts';
import { pushAuthorizationRequest, startPushedAuthorization } from '../../../src/par.ts';
import { clientOf } from './support/client-of.ts';
import { redirectUri, webClient } from './support/clients.ts';
import { headlessBrowser } from './support/headless-browser.ts';
import { startProvider, user } from './support/start-provider.ts';

const pushingClient = { ...webClient, require_pushed_authorization_requests: true };

t.test('a user signs in through a pushed request', async (t) => {
  const provider = await startProvider({ clients: [pushingClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, pushingClient);
  const { url, transaction, expiresIn } = await startPushedAuthorization(client, { scope: 'openid email' });
  t.ok(expiresIn > 0);
  t.same([...new URL(url).searchParams.keys()], ['client_id', 'request_uri']);
  const callback = await headlessBrowser().visit(url, redirectUri);
  const token = await client.authCode.completeAuthorization(callback, transaction);
  t.match((await token.get('/me')).parsed, { sub: user.sub });
});

t.test(
  'what the provider will not have is refused when it is pushed, before a browser is sent anywhere',
  async (t) => {
    const provider = await startProvider({ clients: [pushingClient] });
    t.teardown(provider.stop);
    const pushed = pushAuthorizationRequest(clientOf(provider, pushingClient), {
      scope: 'openid',
      redirect_uri: 'https://evil.test/callback',
    });
    await t.rejects(pushed, { status: 400, code: /^invalid_/ });
  },
);

t.test('a user signs in where the metadata require pushed requests', async (t) => {
  const features = { pushedAuthorizationRequests: { requirePushedAuthorizationRequests: true } };
  const provider = await startProvider({ clients: [webClient], configuration: { features } });
  t.teardown(provider.stop);
  const { client_id: clientId, client_secret: clientSecret } = webClient;
  const client = await discoverClient(provider.issuer, {
    ...{ clientId, clientSecret, redirectUri, idTokenSignedResponseAlg: 'ES256' },
    site: provider.issuer,
  });
  const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid email' });
  t.same([...new URL(url).searchParams.keys()], ['client_id', 'request_uri']);
  const callback = await headlessBrowser().visit(url, redirectUri);
  const token = await client.authCode.completeAuthorization(callback, transaction);
  t.match((await token.get('/me')).parsed, { sub: user.sub });
});
