import t from 'tap';
import { createDpop, generateDpopKey } from '../src/dpop/dpop.ts';
import { clientCredentialsGrant, clientSecretBasic } from '../src/grants.ts';
import {
  AccessToken,
  Client,
  type ClientOptions,
  OAuthClientError,
  TokenResponseError,
} from '../src/index.ts';
import { createAuthorizationServer } from '../src/testing.ts';
import { makeManager, startGrant } from './tokens/make-manager.ts';

const cause = new TypeError('by the caller');
function fail(): never {
  throw cause;
}

function makeClient(options: ClientOptions<true>) {
  const server = createAuthorizationServer();
  const client = new Client({
    ...{ site: server.issuer, clientId: 'client', clientSecret: 'secret', fetch: server.fetch },
    ...options,
  });
  return { client, server };
}

// From JavaScript, where no compiler objects.
const invalid = (value: unknown) => value as never;

const cases: readonly [string, ClientOptions<true>, Record<string, unknown>][] = [
  ['now throws', { now: fail }, { kind: 'OAUTH_CLIENT_CONFIGURATION', cause }],
  ['now returns no number', { now: () => Number.NaN }, { kind: 'OAUTH_CLIENT_CONFIGURATION' }],
  ['retry throws', { retry: fail }, { kind: 'OAUTH_CLIENT_CONFIGURATION', cause }],
  ['retry rejects', { retry: async () => fail() }, { kind: 'OAUTH_CLIENT_CONFIGURATION', cause }],
  ['retry returns nothing', { retry: invalid(async () => {}) }, { kind: 'OAUTH_CLIENT_CONFIGURATION' }],
  ['fetch throws', { fetch: fail }, { kind: 'OAUTH_CLIENT_CONNECTION', cause }],
  ['fetch rejects', { fetch: async () => fail() }, { kind: 'OAUTH_CLIENT_CONNECTION', cause }],
  [
    'fetch returns no Response',
    { fetch: invalid(() => 'text') },
    { kind: 'OAUTH_CLIENT_CONFIGURATION', message: /`fetch` must return/ },
  ],
];
for (const [name, options, expected] of cases) {
  t.test(`${name}: token requests reject with an error of the library`, async (t) => {
    const { client } = makeClient(options);
    const error: unknown = await client.clientCredentials.getToken().catch((thrown: unknown) => thrown);
    t.ok(error instanceof OAuthClientError);
    t.match(error, expected);
  });
}

t.test('a parsedFactory that throws is the cause of a ParseError', async (t) => {
  const { client } = makeClient({ parsedFactory: fail });
  const response = await client.request('GET', '/.well-known/openid-configuration');
  t.throws(() => response.parsed, { name: 'ParseError', cause });
  await t.rejects(client.clientCredentials.getToken(), { name: 'TokenResponseError', cause: { cause } });
});

t.test('an accessTokenFactory that fails is the cause of an error with the token response', async (t) => {
  const factories = { fail, 'returns nothing': invalid(() => undefined) };
  for (const accessTokenFactory of Object.values(factories)) {
    const { client, server } = makeClient({ accessTokenFactory });
    const { refresh_token: refreshToken = '' } = await server.issueTokens({});
    const token = AccessToken.fromHash(client, { access_token: 'at', refresh_token: refreshToken });
    const error: unknown = await token.refresh().catch((thrown: unknown) => thrown);
    if (!(error instanceof TokenResponseError)) throw error;
    t.match(error.message, /`accessTokenFactory`/);
    t.notOk(error.retryable, 'the refresh token is spent');
    t.match(error.response.parsed, { refresh_token: String }, 'its successor is not lost');
    const { ok } = await client.clientCredentials.getToken({}, { throwOnError: false });
    t.equal(ok, false);
  }
  const { client } = makeClient({ accessTokenFactory: fail });
  await t.rejects(client.clientCredentials.getToken(), { cause });
});

const brokenFactories: Record<string, (isBroken: () => boolean) => ClientOptions<true>> = {
  'the accessTokenFactory fails': (isBroken) => ({
    accessTokenFactory(client, { fields, options }) {
      if (isBroken()) fail();
      return AccessToken.fromHash(client, fields, options);
    },
  }),
  'the parsedFactory fails': (isBroken) => ({ parsedFactory: (parsed) => (isBroken() ? fail() : parsed) }),
  'the parsedFactory makes no token response': (isBroken) => ({
    parsedFactory: (parsed) => (isBroken() ? new Map(Object.entries(parsed)) : parsed),
  }),
};
for (const [name, makeOptions] of Object.entries(brokenFactories)) {
  t.test(`a TokenManager keeps the rotated refresh token if ${name}`, async (t) => {
    const factory = { isBroken: true };
    const { server, token: issued } = await startGrant();
    const client = new Client({
      ...{ site: server.issuer, clientId: 'client', clientSecret: 'secret' },
      ...{ fetch: server.fetch, now: server.now },
      ...makeOptions(() => factory.isBroken),
    });
    await using manager = makeManager({ client, token: AccessToken.fromHash(client, issued.toStored()) });
    server.advance(3601);
    await t.rejects(manager.getToken(), { name: 'TokenResponseError', retryable: false });
    t.ok(server.isActive((await manager.getToken()).token));
    factory.isBroken = false;
    server.advance(3601);
    t.ok(server.isActive((await manager.getToken()).token), 'the grant was not revoked for reuse');
    t.equal(server.count('token'), 3);
  });
}

t.test('the functions of a grant fail in the same way', async (t) => {
  const grantClient = { tokenEndpoint: 'https://as.test/token', clientId: 'c', auth: clientSecretBasic('s') };
  const token = () => Response.json({ access_token: 'at', token_type: 'Bearer', expires_in: 60 });
  await t.rejects(clientCredentialsGrant({ ...grantClient, fetch: fail }), {
    name: 'ConnectionError',
    cause,
  });
  await t.rejects(clientCredentialsGrant({ ...grantClient, fetch: invalid(() => undefined) }), {
    name: 'ConfigurationError',
  });
  const withClock = { ...grantClient, fetch: async () => token(), now: fail };
  await t.rejects(clientCredentialsGrant(withClock), { name: 'ConfigurationError', cause });
  const dpop = await createDpop({ key: await generateDpopKey(), now: fail, fetch: async () => token() });
  await t.rejects(clientCredentialsGrant({ ...grantClient, fetch: dpop.fetch }), {
    ...{ name: 'ConfigurationError', cause },
  });
});
