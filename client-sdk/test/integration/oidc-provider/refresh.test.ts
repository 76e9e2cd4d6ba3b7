import t from 'tap';
import { AccessToken, TokenResponseError } from '../../../src/index.ts';
import { clientOf } from './support/client-of.ts';
import { publicClient, webClient } from './support/clients.ts';
import { signIn } from './support/sign-in.ts';
import { startProvider, user } from './support/start-provider.ts';

for (const registered of [webClient, publicClient]) {
  t.test(
    `a refreshed token of the client ${registered.client_id} has a new refresh token and works`,
    async (t) => {
      const provider = await startProvider({ clients: [registered] });
      t.teardown(provider.stop);
      const token = await signIn(clientOf(provider, registered));
      const refreshed = await token.refresh();
      t.not(refreshed.token, token.token);
      t.not(refreshed.refreshToken, token.refreshToken);
      t.match((await refreshed.get('/me')).parsed, { sub: user.sub });
    },
  );
}

t.test('a refresh token that was spent is rejected, and takes all tokens of its grant with it', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const token = await signIn(clientOf(provider, webClient));
  const refreshed = await token.refresh();
  await t.rejects(token.refresh(), TokenResponseError);
  await t.rejects(refreshed.refresh(), { code: 'invalid_grant' });
});

t.test('a restored token can be refreshed', async (t) => {
  const provider = await startProvider({ clients: [webClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, webClient);
  const stored = JSON.stringify((await signIn(client)).toStored());
  const restored = AccessToken.fromHash(client, JSON.parse(stored));
  t.ok((await restored.refresh()).token);
});
