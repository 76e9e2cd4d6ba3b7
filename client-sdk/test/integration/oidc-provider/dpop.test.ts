import { randomBytes } from 'node:crypto';
import t from 'tap';
import { createDpop, generateDpopKey } from '../../../src/dpop/dpop.ts';
import { AccessToken } from '../../../src/index.ts';
import { clientOf } from './support/client-of.ts';
import { publicClient, webClient } from './support/clients.ts';
import { signIn } from './support/sign-in.ts';
import { startProvider, user } from './support/start-provider.ts';

const boundClient = { ...publicClient, dpop_bound_access_tokens: true };
/** Has the provider want its own nonce in every proof. */
const withNonces = {
  features: { dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true } },
};

t.test('a token that is bound to a key works with the key, and refreshes with it', async (t) => {
  const provider = await startProvider({ clients: [boundClient] });
  t.teardown(provider.stop);
  const dpop = await createDpop({ key: await generateDpopKey() });
  const token = await signIn(clientOf(provider, boundClient, { fetch: dpop.fetch }));
  t.equal(token.tokenType, 'DPoP');
  t.match((await token.get('/me')).parsed, { sub: user.sub });
  const refreshed = await token.refresh();
  t.match((await refreshed.get('/me')).parsed, { sub: user.sub });
});

t.test('a stolen token is rejected, as Bearer and with another key', async (t) => {
  const provider = await startProvider({ clients: [boundClient] });
  t.teardown(provider.stop);
  const dpop = await createDpop({ key: await generateDpopKey() });
  const { token } = await signIn(clientOf(provider, boundClient, { fetch: dpop.fetch }));
  const thief = await createDpop({ key: await generateDpopKey() });
  const client = clientOf(provider, boundClient, { fetch: thief.fetch });
  const asBearer = AccessToken.fromHash(client, { access_token: token, token_type: 'Bearer' });
  const withOtherKey = AccessToken.fromHash(client, { access_token: token, token_type: 'DPoP' });
  await t.rejects(asBearer.get('/me'), { status: 401, code: 'invalid_token' });
  await t.rejects(withOtherKey.get('/me'), { status: 401, code: 'invalid_token' });
});

for (const registered of [boundClient, { ...webClient, dpop_bound_access_tokens: true }]) {
  t.test(
    `the provider's nonce is learnt by the client ${registered.client_id}, and no code is lost`,
    async (t) => {
      const provider = await startProvider({ clients: [registered], configuration: withNonces });
      t.teardown(provider.stop);
      const dpop = await createDpop({ key: await generateDpopKey() });
      const token = await signIn(clientOf(provider, registered, { fetch: dpop.fetch }));
      t.match((await token.get('/me')).parsed, { sub: user.sub });
    },
  );
}
