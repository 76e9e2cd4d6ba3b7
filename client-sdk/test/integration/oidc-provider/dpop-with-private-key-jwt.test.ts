import { randomBytes } from 'node:crypto';
import t from 'tap';
import { createDpop, generateDpopKey } from '../../../src/dpop/dpop.ts';
import { clientOf } from './support/client-of.ts';
import { serviceClient } from './support/clients.ts';
import { makeSigningKey, startProvider } from './support/start-provider.ts';

t.test(
  'a request repeated for its nonce has a new client assertion, for providers take each once',
  async (t) => {
    const { client_secret: _none, ...service } = serviceClient;
    const key = await makeSigningKey('key-1');
    const { d: _secret, ...publicKey } = key;
    const signer = {
      ...service,
      token_endpoint_auth_method: 'private_key_jwt' as const,
      dpop_bound_access_tokens: true,
      jwks: { keys: [publicKey] },
    };
    const provider = await startProvider({
      clients: [signer],
      configuration: {
        features: { dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => true } },
      },
    });
    t.teardown(provider.stop);
    const dpop = await createDpop({ key: await generateDpopKey() });
    const clientAuth = { method: 'private_key_jwt', algorithm: 'ES256', key, keyId: 'key-1' } as const;
    const token = await clientOf(provider, signer, {
      clientAuth,
      fetch: dpop.fetch,
    }).clientCredentials.getToken();
    t.equal(token.tokenType, 'DPoP');
  },
);
