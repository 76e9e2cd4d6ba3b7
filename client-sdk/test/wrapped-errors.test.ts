import t from 'tap';
import { createDpop, generateDpopKey } from '../src/dpop/dpop.ts';
import { clientCredentialsGrant, clientSecretBasic } from '../src/grants.ts';
import { Client, type ClientOptions, OAuthClientError } from '../src/index.ts';
import { createAuthorizationServer } from '../src/testing.ts';

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
