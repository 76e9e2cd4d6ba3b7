import t from 'tap';
import { createIdTokenValidator } from '../../../src/id-token/id-token.ts';
import { IdTokenError } from '../../../src/index.ts';
import { clientOf } from './support/client-of.ts';
import { redirectUri, webClient } from './support/clients.ts';
import { headlessBrowser } from './support/headless-browser.ts';
import { startProvider, user } from './support/start-provider.ts';

t.test('an id_token of the provider is validated: signature, claims, nonce and at_hash', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const validateIdToken = createIdTokenValidator({ client, jwksUri: `${provider.issuer}/jwks` });
  const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid email' });
  const callback = await headlessBrowser().visit(url, redirectUri);
  const token = await client.authCode.completeAuthorization(callback, transaction, { validateIdToken });
  const { nonce = '' } = transaction;
  const claims = await validateIdToken(token.idToken ?? '', { nonce, accessToken: token.token });
  t.match(claims, { iss: provider.issuer, aud: webClient.client_id, sub: user.sub, nonce });
});

t.test('an id_token of another sign-in is rejected by its nonce', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const validateIdToken = createIdTokenValidator({ client, jwksUri: `${provider.issuer}/jwks` });
  const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid' });
  const callback = await headlessBrowser().visit(url, redirectUri);
  const other = { ...transaction, nonce: 'of another sign-in' };
  const completion = client.authCode.completeAuthorization(callback, other, { validateIdToken });
  await t.rejects(completion, IdTokenError);
});

t.test('the ID token of a refresh must have the same subject', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const validateIdToken = createIdTokenValidator({ client, jwksUri: `${provider.issuer}/jwks` });
  const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid' });
  const callback = await headlessBrowser().visit(url, redirectUri);
  const token = await client.authCode.completeAuthorization(callback, transaction);
  const refreshed = await token.refresh();
  const expected = { nonce: false, subject: user.sub } as const;
  t.equal((await validateIdToken(refreshed.idToken ?? '', expected)).sub, user.sub);
  await t.rejects(validateIdToken(refreshed.idToken ?? '', { nonce: false, subject: 'eve' }), IdTokenError);
});
