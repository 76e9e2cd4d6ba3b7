import t from 'tap';
import { RevocationError } from '../../../src/index.ts';
import { clientOf } from './support/client-of.ts';
import { serviceClient, webClient } from './support/clients.ts';
import { signIn } from './support/sign-in.ts';
import { startProvider } from './support/start-provider.ts';

t.test('a revoked access token is rejected', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const token = await signIn(clientOf(provider, webClient));
  t.equal((await token.get('/me')).status, 200);
  t.equal((await token.revoke({ tokenTypeHint: 'access_token' })).status, 200);
  const response = await token.get('/me', { throwOnError: false });
  t.equal(response.status, 401);
  t.match(response.error, { code: 'invalid_token' });
});

t.test('a revoked refresh token cannot be refreshed', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const token = await signIn(clientOf(provider, webClient));
  await token.revoke({ tokenTypeHint: 'refresh_token' });
  await t.rejects(token.refresh(), { code: 'invalid_grant' });
});

t.test('a token of another client is not revoked, and the provider says so', async (t) => {
  const provider = await startProvider({ clients: [webClient, serviceClient] });
  t.teardown(provider.stop);
  const token = await signIn(clientOf(provider, webClient));
  const revocation = clientOf(provider, serviceClient).revokeToken(token.token);
  await t.rejects(revocation, RevocationError);
  t.equal((await token.get('/me')).status, 200);
});
