import t from 'tap';
import { StateMismatchError, TokenResponseError } from '../../../src/index.ts';
import { clientOf } from './support/client-of.ts';
import { publicClient, redirectUri, webClient } from './support/clients.ts';
import { headlessBrowser } from './support/headless-browser.ts';
import { signIn } from './support/sign-in.ts';
import { startProvider, user } from './support/start-provider.ts';

for (const registered of [webClient, publicClient]) {
  t.test(`a user signs in through the client ${registered.client_id}, with PKCE`, async (t) => {
    const provider = await startProvider({ clients: [registered] });
    t.teardown(provider.stop);
    const token = await signIn(clientOf(provider, registered));
    t.ok(token.refreshToken);
    t.ok(token.idToken);
    t.same(token.scope, ['openid', 'email']);
    t.same((await token.get('/me')).parsed, user);
  });
}

t.test('exchanging a code twice is invalid_grant', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid' });
  const callback = await headlessBrowser().visit(url, redirectUri);
  const code = callback.searchParams.get('code') ?? '';
  const params = { code_verifier: transaction.codeVerifier };
  t.ok((await client.authCode.getToken(code, params)).token);
  await t.rejects(client.authCode.getToken(code, params), { code: 'invalid_grant' });
});

t.test('a code without its PKCE verifier is rejected', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const { url } = await client.authCode.startAuthorization({ scope: 'openid' });
  const callback = await headlessBrowser().visit(url, redirectUri);
  const code = callback.searchParams.get('code') ?? '';
  await t.rejects(client.authCode.getToken(code), TokenResponseError);
});

t.test('a callback with the state of another session is rejected before its code is sent', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const mine = await client.authCode.startAuthorization({ scope: 'openid' });
  const theirs = await client.authCode.startAuthorization({ scope: 'openid' });
  const callback = await headlessBrowser().visit(theirs.url, redirectUri);
  await t.rejects(client.authCode.completeAuthorization(callback, mine.transaction), StateMismatchError);
  t.ok(
    (await client.authCode.completeAuthorization(callback, theirs.transaction)).token,
    'the code is unspent',
  );
});

t.test('a refusal of the provider has its error code', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const { url, transaction } = await client.authCode.startAuthorization({
    scope: 'openid',
    prompt: 'none',
  });
  const callback = await headlessBrowser().visit(url, redirectUri);
  await t.rejects(client.authCode.completeAuthorization(callback, transaction), {
    name: 'AuthorizationResponseError',
    code: 'login_required',
  });
});
