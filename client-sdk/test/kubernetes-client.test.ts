import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Client } from '../src/index.ts';
import { kubernetesServiceAccount } from '../src/kubernetes.ts';
import { createAuthorizationServer } from '../src/testing.ts';

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (name: string) =>
  `${encode({ alg: 'RS256' })}.${encode({ sub: `system:serviceaccount:shop:${name}` })}.c2ln`;

t.test(
  'a client without a secret proves itself with the token in its file, as it is at each request',
  async (t) => {
    const server = createAuthorizationServer({
      clients: [{ clientId: 'shop', verifyAssertion: () => true }],
    });
    const path = join(t.testdir({}), 'token');
    writeFileSync(path, jwt('one'));
    const client = new Client({
      ...{ site: server.issuer, clientId: 'shop', fetch: server.fetch },
      clientAuth: kubernetesServiceAccount({ path }),
    });
    t.ok((await client.clientCredentials.getToken()).token);
    writeFileSync(path, jwt('two'));
    await client.clientCredentials.getToken();
    t.same(
      server.requests.map(({ params }) => params.get('client_assertion')),
      [jwt('one'), jwt('two')],
    );
    t.match(server.requests[0]?.params.get('client_assertion_type'), /jwt-bearer$/);
  },
);

t.test('a missing file fails the request and nothing is sent', async (t) => {
  const server = createAuthorizationServer();
  const client = new Client({
    ...{ site: server.issuer, clientId: 'shop', fetch: server.fetch },
    clientAuth: kubernetesServiceAccount({ path: join(t.testdir({}), 'missing') }),
  });
  await t.rejects(client.clientCredentials.getToken(), {
    name: 'ConfigurationError',
    cause: { name: 'TokenUnavailableError', message: /projected volume/ },
  });
  t.equal(server.requests.length, 0);
});
