import { tmpdir } from 'node:os';
import t from 'tap';
import { startDeviceAuthorization } from '../src/device/device.ts';
import { createMetadataSource, discover } from '../src/discovery.ts';
import { createDpop, generateDpopKey } from '../src/dpop/dpop.ts';
import {
  clientCredentialsGrant,
  processTokenResponse,
  publicClient,
  revocationRequest,
} from '../src/grants.ts';
import { createIdTokenValidator } from '../src/id-token/id-token.ts';
import { AccessToken, Client } from '../src/index.ts';
import { introspectToken } from '../src/introspection.ts';
import { kubernetesServiceAccount, readServiceAccountToken, workloadIdentity } from '../src/kubernetes.ts';
import { fileTokenStore, nodeTransport } from '../src/node.ts';
import { otelHooks } from '../src/otel.ts';
import { pushAuthorizationRequest, startPushedAuthorization } from '../src/par.ts';
import { createRetryPolicy } from '../src/retry.ts';
import { createAuthorizationServer, startAuthorizationServer } from '../src/testing.ts';
import { TokenManager } from '../src/token-manager.ts';
import { recordingFetch, tokenAnswer } from './support/recording-fetch.ts';

const { fetch, sent } = recordingFetch(tokenAnswer());
const endpoints = {
  introspectionEndpoint: 'https://as.test/introspect',
  deviceAuthorizationEndpoint: 'https://as.test/device',
  pushedAuthorizationRequestEndpoint: 'https://as.test/par',
};
const grantClient = {
  clientId: 'id',
  auth: publicClient,
  tokenEndpoint: 'https://as.test/token',
  revocationEndpoint: 'https://as.test/revoke',
  fetch,
};
const client = new Client({
  clientId: 'id',
  clientSecret: 's',
  site: 'https://as.test',
  fetch,
  ...endpoints,
});
const token = AccessToken.fromHash(client, { access_token: 'at' });
// Callers without types.
const unknown: object = { unheardOf: 1 };
const dpopKey = await generateDpopKey();

const calls: Record<string, () => unknown> = {
  Client: () => new Client(unknown),
  'redact of Client': () => new Client({ redact: unknown }),
  'clientAuth of Client': () =>
    new Client({
      clientAuth: { method: 'client_secret_jwt', ...unknown } as { method: 'client_secret_jwt' },
    }),
  'client.request': () => client.request('GET', '/', unknown),
  'client.getToken': () => client.getToken({}, unknown),
  'client.revokeToken': () => client.revokeToken('at', unknown),
  'authCode.getToken': () => client.authCode.getToken('code', {}, unknown),
  AccessToken: () => new AccessToken(client, 'at', unknown),
  'AccessToken.fromHash': () => AccessToken.fromHash(client, { access_token: 'at' }, unknown),
  'token.get': () => token.get('/', unknown),
  'token.revoke': () => token.revoke(unknown),
  TokenManager: () => new TokenManager({ client, ...unknown }),
  createRetryPolicy: () => createRetryPolicy(unknown),
  createIdTokenValidator: () =>
    createIdTokenValidator({ client, issuer: 'https://as.test', jwks: { keys: [] }, ...unknown }),
  createDpop: () => createDpop({ key: dpopKey, ...unknown }),
  discover: () => discover('https://as.test', { fetch, ...unknown }),
  introspectToken: () => introspectToken(client, 'at', unknown),
  startDeviceAuthorization: () => startDeviceAuthorization(client, {}, unknown),
  nodeTransport: () => nodeTransport(unknown),
  fileTokenStore: () => fileTokenStore({ folder: tmpdir(), ...unknown }),
  otelHooks: () => otelHooks(unknown),
  'keySet of createIdTokenValidator': () =>
    createIdTokenValidator({ client, issuer: 'https://as.test', jwksUri: '/jwks', keySet: unknown }),
  createMetadataSource: () => createMetadataSource('https://as.test', { fetch, ...unknown }),
  GrantClient: () => clientCredentialsGrant({ ...grantClient, ...unknown }),
  GrantOptions: () => clientCredentialsGrant(grantClient, {}, unknown),
  revocationRequest: () => revocationRequest({ ...grantClient, ...unknown }, { token: 'at' }),
  processTokenResponse: () => processTokenResponse({ ...grantClient, ...unknown }, new Response()),
  pushAuthorizationRequest: () => pushAuthorizationRequest(client, {}, unknown),
  startPushedAuthorization: () => startPushedAuthorization(client, {}, unknown),
  kubernetesServiceAccount: () => kubernetesServiceAccount(unknown),
  workloadIdentity: () => workloadIdentity({ AZURE_FEDERATED_TOKEN_FILE: '/token' }, unknown),
  readServiceAccountToken: () => readServiceAccountToken(unknown),
  createAuthorizationServer: () => createAuthorizationServer(unknown),
  'clients of createAuthorizationServer': () =>
    createAuthorizationServer({ clients: [{ clientId: 'id', ...unknown }] }),
  'users of createAuthorizationServer': () =>
    createAuthorizationServer({ users: [{ username: 'u', password: 'p', ...unknown }] }),
  startAuthorizationServer: () => startAuthorizationServer(unknown),
  'tls of startAuthorizationServer': () =>
    startAuthorizationServer({ tls: { key: '', cert: '', ...unknown } }),
  inject: () => createAuthorizationServer().inject({ effect: 'refuse', ...unknown }),
};

for (const [name, call] of Object.entries(calls)) {
  t.test(`${name} rejects an unknown option, and sends nothing`, async (t) => {
    await t.rejects(async () => await call(), {
      name: 'ConfigurationError',
      message: /unheardOf` is not an option/,
    });
    t.equal(sent.length, 0);
  });
}

t.test('all unknown options are named, with the ones that were probably meant', async (t) => {
  const options: object = { client_id: 'id', tokenEndpiont: '/token', requestinit: {}, colour: 'red' };
  const message = [
    "the client's options: `client_id` is not an option; did you mean `clientId`?",
    '`tokenEndpiont` is not an option; did you mean `tokenEndpoint`?',
    '`requestinit` is not an option; did you mean `requestInit`?',
    '`colour` is not an option',
  ].join('; ');
  t.throws(() => new Client(options), { message });
});

t.test('an unknown option that is undefined counts as not given', async (t) => {
  const options: object = { unheardOf: undefined };
  t.doesNotThrow(() => new Client(options));
});
