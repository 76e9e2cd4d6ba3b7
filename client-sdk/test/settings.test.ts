import { exportJWK, generateKeyPair } from 'jose';
import t from 'tap';
import { createMetadataSource } from '../src/discovery.ts';
import { createIdTokenValidator, type JwsAlgorithm } from '../src/id-token/id-token.ts';
import { AccessToken, Client } from '../src/index.ts';
import { createAuthorizationServer } from '../src/testing.ts';
import { TokenManager } from '../src/token-manager.ts';
import { recordingFetch, tokenAnswer } from './support/recording-fetch.ts';

const site = 'https://as.test';

t.test('later changes of options do not affect a client', async (t) => {
  const { fetch, sent } = recordingFetch(tokenAnswer({ ssn: 's3cr3t' }));
  const lines: string[] = [];
  const headers: Record<string, string> = { 'x-tenant': 'a' };
  const keys = ['ssn'];
  const allowedOrigins: string[] = [];
  const parsers: Record<string, () => unknown> = {};
  const hooks: Record<string, () => void> = {};
  const client = new Client({
    ...{ clientId: 'id', clientSecret: 'x', site, fetch, allowedOrigins, parsers, hooks },
    ...{ requestInit: { headers }, redact: { keys } },
    ...{ debug: true, logger: { info: (line: string) => void lines.push(line) } },
  });
  headers['x-tenant'] = 'b';
  keys.length = 0;
  allowedOrigins.push('https://evil.test');
  parsers['application/json'] = () => ({ access_token: 'evil' });
  hooks.onRequest = () => t.fail('a hook that was added later is called');
  const token = await client.clientCredentials.getToken();
  t.equal(token.token, 'at');
  t.equal(sent[0]?.headers.get('x-tenant'), 'a');
  t.notMatch(lines.join('\n'), /s3cr3t/);
  await t.rejects(token.get('https://evil.test/'), { name: 'ConfigurationError' });
});

t.test('later changes of clientAuth do not affect a client', async (t) => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = await exportJWK(privateKey);
  const audience = ['https://as.test'];
  const clientAuth = {
    method: 'private_key_jwt',
    algorithm: 'ES256' as JwsAlgorithm,
    key,
    audience,
  } as const;
  const { fetch, sent } = recordingFetch(tokenAnswer());
  const client = new Client({ clientId: 'id', site, fetch, clientAuth });
  audience[0] = 'https://evil.test';
  Object.assign(clientAuth, { algorithm: 'RS256' });
  key.d = 'nothing';
  await client.clientCredentials.getToken();
  const assertion = new URLSearchParams(sent[0]?.body).get('client_assertion') ?? '';
  const [header, claims] = assertion.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  t.match([header, claims], [/"ES256"/, /"aud":\["https:\/\/as\.test"\]/]);
});

t.test('later changes of options do not affect a token', async (t) => {
  const { fetch, sent } = recordingFetch(() => Response.json({}));
  const client = new Client({ clientId: 'id', site, fetch });
  const mode: Record<string, 'header' | 'query'> = { get: 'header' };
  const stored = { access_token: 'at', user: { name: 'ada' } };
  const token = AccessToken.fromHash(client, stored, { mode });
  mode.get = 'query';
  stored.user.name = 'eve';
  await token.get('/x');
  t.equal(sent[0]?.url.search, '');
  t.same(token.param('user'), { name: 'ada' });
});

t.test(
  'later changes of options do not affect a TokenManager, a metadata source or a validator',
  async (t) => {
    const server = createAuthorizationServer();
    const client = new Client({
      ...{
        clientId: 'client',
        clientSecret: 'secret',
        site,
        issuer: site,
        fetch: server.fetch,
        now: server.now,
      },
    });
    const refreshParams = { scope: ['a'] };
    const token = await client.password.getToken('user', 'password', { scope: ['a', 'b'] });
    await using manager = new TokenManager({ client, token, refreshParams });
    refreshParams.scope.push('evil');
    await manager.renew();
    t.equal(server.requests.at(-1)?.params.get('scope'), 'a');

    const headers: Record<string, string> = { 'x-tenant': 'a' };
    const metadata = createMetadataSource(site, { fetch: server.fetch, requestInit: { headers } });
    headers['x-tenant'] = 'b';
    await metadata();
    t.equal(server.requests.at(-1)?.headers.get('x-tenant'), 'a');

    const algorithms: JwsAlgorithm[] = ['ES256'];
    const validate = createIdTokenValidator({ client, jwksUri: server.endpoints.jwks, algorithms });
    algorithms[0] = 'RS256';
    const { id_token: idToken = '' } = await server.issueTokens({ scope: 'openid' });
    t.equal((await validate(idToken)).sub, 'user');
  },
);

t.test('a key named __proto__ is copied as a key', async (t) => {
  const client = new Client({ clientId: 'id', site });
  const stored = JSON.parse('{"access_token":"at","user":{"__proto__":{"admin":true}}}');
  const user = AccessToken.fromHash(client, stored).param('user');
  t.equal((user as Record<string, unknown>).admin, undefined);
  t.ok(Object.hasOwn(user as object, '__proto__'));
});
