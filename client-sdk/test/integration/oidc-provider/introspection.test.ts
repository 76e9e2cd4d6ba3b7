import t from 'tap';
import { introspectToken } from '../../../src/introspection.ts';
import { clientOf } from './support/client-of.ts';
import { serviceClient, webClient } from './support/clients.ts';
import { signIn } from './support/sign-in.ts';
import { startProvider, user } from './support/start-provider.ts';

t.test('introspection returns the subject of a token', async (t) => {
  const provider = await startProvider({ clients: [webClient, serviceClient] });
  t.teardown(provider.stop);
  const { token } = await signIn(clientOf(provider, webClient));
  const answer = await introspectToken(clientOf(provider, serviceClient), token, { hint: 'access_token' });
  t.match(answer, { active: true, sub: user.sub, client_id: 'web', scope: 'openid email' });
});

t.test('a revoked token and an unknown one are inactive, without further members', async (t) => {
  const provider = await startProvider({ clients: [webClient, serviceClient] });
  t.teardown(provider.stop);
  const token = await signIn(clientOf(provider, webClient));
  await token.revoke();
  const resourceServer = clientOf(provider, serviceClient);
  t.same(await introspectToken(resourceServer, token.token), { active: false });
  t.same(await introspectToken(resourceServer, 'never issued'), { active: false });
});

t.test('introspection needs client authentication', async (t) => {
  const provider = await startProvider({ clients: [serviceClient] });
  t.teardown(provider.stop);
  const impostor = clientOf(provider, serviceClient, { clientSecret: 'wrong' });
  await t.rejects(introspectToken(impostor, 'any'), { code: 'invalid_client' });
});
