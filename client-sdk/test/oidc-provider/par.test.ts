import t from 'tap';
import { pushAuthorizationRequest, startPushedAuthorization } from '../../src/par.ts';
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
