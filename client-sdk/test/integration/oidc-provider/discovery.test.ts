import t from 'tap';
import { clientOptionsFrom, discover, discoverClient } from '../../../src/discovery.ts';
import { Client, IssuerMismatchError } from '../../../src/index.ts';
import { serviceClient } from './support/clients.ts';
import { startProvider } from './support/start-provider.ts';

t.test("a client made from the provider's metadata gets tokens", async (t) => {
  const provider = await startProvider({ clients: [serviceClient] });
  t.teardown(provider.stop);
  const metadata = await discover(provider.issuer);
  t.equal(metadata.jwks_uri, `${provider.issuer}/jwks`);
  const { client_id: clientId, client_secret: clientSecret } = serviceClient;
  const client = new Client({ ...clientOptionsFrom(metadata), clientId, clientSecret });
  t.ok((await client.clientCredentials.getToken()).token);
});

t.test('discoverClient returns a client with the endpoints found', async (t) => {
  const provider = await startProvider({ clients: [serviceClient] });
  t.teardown(provider.stop);
  const { client_id: clientId, client_secret: clientSecret } = serviceClient;
  const client = await discoverClient(provider.issuer, { clientId, clientSecret });
  t.equal(client.settings.issuer, provider.issuer);
  t.ok((await client.clientCredentials.getToken()).token);
});

t.test('a secret is sent by the only method that the provider supports', async (t) => {
  const registered = { ...serviceClient, token_endpoint_auth_method: 'client_secret_post' } as const;
  const provider = await startProvider({
    clients: [registered],
    configuration: {
      clientAuthMethods: ['client_secret_post', 'private_key_jwt'],
      clientDefaults: {
        token_endpoint_auth_method: 'client_secret_post',
        id_token_signed_response_alg: 'ES256',
      },
    },
  });
  t.teardown(provider.stop);
  const { client_id: clientId, client_secret: clientSecret } = registered;
  const client = await discoverClient(provider.issuer, { clientId, clientSecret });
  t.ok((await client.clientCredentials.getToken()).token);
});

t.test('an issuer that differs by a slash is another issuer', async (t) => {
  const provider = await startProvider({ clients: [] });
  t.teardown(provider.stop);
  await t.rejects(discover(`${provider.issuer}/`), IssuerMismatchError);
});
