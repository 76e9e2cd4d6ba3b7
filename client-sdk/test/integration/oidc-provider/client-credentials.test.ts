import t from 'tap';
import { TokenResponseError } from '../../../src/index.ts';
import { clientOf } from './support/client-of.ts';
import { serviceClient } from './support/clients.ts';
import { makeSigningKey, startProvider } from './support/start-provider.ts';

t.test('a service gets a token with its secret in a Basic header', async (t) => {
  const provider = await startProvider({ clients: [serviceClient] });
  t.teardown(provider.stop);
  const token = await clientOf(provider, serviceClient).clientCredentials.getToken();
  t.ok(token.token);
  t.equal(token.tokenType, 'Bearer');
  t.equal(token.expiresIn, 600);
  t.notOk(token.expired());
});

t.test('a secret of special characters is transmitted unchanged, by Basic and by form', async (t) => {
  const special = { ...serviceClient, client_secret: 'a&b=c+d e%f:g"h' };
  const provider = await startProvider({ clients: [special] });
  t.teardown(provider.stop);
  for (const clientAuth of ['client_secret_basic', 'client_secret_post'] as const) {
    const token = await clientOf(provider, special, { clientAuth }).clientCredentials.getToken();
    t.ok(token.token, clientAuth);
  }
});

t.test("a wrong secret is a TokenResponseError with the provider's description", async (t) => {
  const provider = await startProvider({ clients: [serviceClient] });
  t.teardown(provider.stop);
  const client = clientOf(provider, serviceClient, { clientSecret: 'wrong' });
  await t.rejects(client.clientCredentials.getToken(), TokenResponseError);
  const outcome = await client.clientCredentials.getToken({}, { throwOnError: false });
  t.match(outcome, {
    ok: false,
    error: { code: 'invalid_client', description: 'client authentication failed', status: 401 },
  });
});

t.test('a service authenticates with private_key_jwt', async (t) => {
  const key = await makeSigningKey('key-1');
  const { d: _secret, ...publicKey } = key;
  const signer = {
    ...{ client_id: 'signer', token_endpoint_auth_method: 'private_key_jwt' as const },
    ...{ grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
    jwks: { keys: [publicKey] },
  };
  const provider = await startProvider({ clients: [signer] });
  t.teardown(provider.stop);
  const clientAuth = { method: 'private_key_jwt', algorithm: 'ES256', key, keyId: 'key-1' } as const;
  const client = clientOf(provider, signer, { clientAuth });
  t.ok((await client.clientCredentials.getToken()).token);
  t.ok((await client.clientCredentials.getToken()).token, 'and again: every assertion has its own jti');
});

t.test('a private key that is not registered is rejected as invalid_client', async (t) => {
  const { d: _secret, ...publicKey } = await makeSigningKey('key-1');
  const signer = {
    ...{ client_id: 'signer', token_endpoint_auth_method: 'private_key_jwt' as const },
    ...{ grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
    jwks: { keys: [publicKey] },
  };
  const provider = await startProvider({ clients: [signer] });
  t.teardown(provider.stop);
  const key = await makeSigningKey('key-1');
  const client = clientOf(provider, signer, {
    clientAuth: { method: 'private_key_jwt', algorithm: 'ES256', key, keyId: 'key-1' },
  });
  await t.rejects(client.clientCredentials.getToken(), { code: 'invalid_client' });
});

t.test('a service authenticates with client_secret_jwt', async (t) => {
  const signer = {
    ...serviceClient,
    client_secret: 'a secret as long as the hash of HS256',
    token_endpoint_auth_method: 'client_secret_jwt' as const,
  };
  const provider = await startProvider({
    clients: [signer],
    configuration: { enabledJWA: { clientAuthSigningAlgValues: ['HS256', 'ES256'] } },
  });
  t.teardown(provider.stop);
  const client = clientOf(provider, signer, { clientAuth: { method: 'client_secret_jwt' } });
  t.ok((await client.clientCredentials.getToken()).token);
});
