import { generateKeyPair, jwtVerify } from 'jose';
import t from 'tap';
import { createDpop, generateDpopKey } from '../src/dpop/dpop.ts';
import {
  authorizationCodeGrant,
  clientCredentialsGrant,
  clientSecretBasic,
  clientSecretPost,
  type GrantClient,
  jwtBearerGrant,
  privateKeyJwt,
  processRevocationResponse,
  processTokenResponse,
  publicClient,
  refreshTokenGrant,
  revocationRequest,
  tokenRequest,
} from '../src/grants.ts';
import { AccessToken, Client } from '../src/index.ts';
import { calculateCodeChallenge, generateCodeVerifier } from '../src/pkce.ts';
import { type AuthorizationServerOptions, createAuthorizationServer } from '../src/testing.ts';
import { answer, recordingFetch, tokenAnswer } from './support/recording-fetch.ts';

function setUp(options: AuthorizationServerOptions = {}) {
  const server = createAuthorizationServer(options);
  const { token: tokenEndpoint, revocation: revocationEndpoint } = server.endpoints;
  const client = {
    ...{ clientId: 'client', auth: clientSecretBasic('secret'), tokenEndpoint, revocationEndpoint },
    ...{ issuer: server.issuer, fetch: server.fetch, now: server.now },
  } satisfies GrantClient;
  return { server, client };
}

/** A client whose server answers as given. */
function clientOf(...answers: (() => Response)[]) {
  const { fetch, sent } = recordingFetch(...answers);
  const client: GrantClient = {
    ...{ clientId: 'id', auth: clientSecretPost('s3cr3t'), tokenEndpoint: 'https://as.test/token', fetch },
    now: () => 1000,
  };
  return { client, sent };
}

t.test('client credentials give a token set', async (t) => {
  const { server, client } = setUp({ now: () => 1_800_000_000 });
  const tokens = await clientCredentialsGrant(client, { scope: ['read', 'write'] });
  t.match(tokens, { tokenType: 'Bearer', expiresAt: 1_800_003_600, scope: 'read write' });
  t.equal(tokens.refreshToken, undefined);
  t.ok(server.isActive(tokens.accessToken));
  t.equal(tokens.fields.access_token, tokens.accessToken);
});

t.test('the fields of a token set make an AccessToken', async (t) => {
  const { server, client } = setUp();
  const { fields } = await clientCredentialsGrant(client);
  const token = AccessToken.fromHash(new Client({ site: server.issuer, fetch: server.fetch }), fields);
  t.equal((await token.get('/resource/x')).status, 200);
});

t.test('parameters are encoded as the class encodes them', async (t) => {
  const { client, sent } = clientOf(tokenAnswer());
  const params = { resource: ['a', 'b'], claims: { id_token: null }, omitted: undefined, n: 1 };
  await clientCredentialsGrant(client, params, { headers: { 'x-a': '1' } });
  t.match(sent, [{ method: 'POST', headers: new Headers() }]);
  t.equal(sent[0]?.headers.get('x-a'), '1');
  t.equal(sent[0]?.headers.get('content-type'), 'application/x-www-form-urlencoded');
  t.same(
    [...new URLSearchParams(sent[0]?.body)],
    [
      ['resource', 'a'],
      ['resource', 'b'],
      ['claims', '{"id_token":null}'],
      ['n', '1'],
      ['grant_type', 'client_credentials'],
      ['client_id', 'id'],
      ['client_secret', 's3cr3t'],
    ],
  );
});

t.test('private_key_jwt signs an assertion for the issuer', async (t) => {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  let assertion = '';
  const verifyAssertion = (jwt: string) => {
    assertion = jwt;
    return true;
  };
  const { server, client } = setUp({
    clients: [{ clientId: 'client', verifyAssertion }],
  });
  const auth = privateKeyJwt({ key: privateKey, algorithm: 'ES256' });
  await clientCredentialsGrant({ ...client, auth });
  const { payload } = await jwtVerify(assertion, publicKey, { audience: server.issuer });
  t.equal(payload.sub, 'client');
  const jwt = await jwtBearerGrant({ ...client, auth }, { assertion: 'a.b.c' });
  t.ok(server.isActive(jwt.accessToken));
});

t.test(
  'a code is exchanged with its verifier, and a refresh keeps or replaces the refresh token',
  async (t) => {
    const { server, client } = setUp({ clients: [{ clientId: 'client', requirePkce: true }] });
    const verifier = generateCodeVerifier();
    const query = new URLSearchParams({
      ...{ response_type: 'code', client_id: 'client', redirect_uri: 'https://app.test/cb', scope: 'openid' },
      ...{ code_challenge: await calculateCodeChallenge(verifier), code_challenge_method: 'S256' },
    });
    const callback = new URL(await server.authorize(`${server.endpoints.authorization}?${query}`));
    const publicOne = { ...client, auth: publicClient };
    const tokens = await authorizationCodeGrant(publicOne, {
      code: callback.searchParams.get('code') ?? '',
      redirect_uri: 'https://app.test/cb',
      code_verifier: verifier,
    });
    t.equal(tokens.idToken?.split('.').length, 3);
    const refreshed = await refreshTokenGrant(publicOne, { refresh_token: tokens.refreshToken ?? '' });
    t.not(refreshed.refreshToken, tokens.refreshToken);
    const { client: other } = clientOf(tokenAnswer());
    t.equal((await refreshTokenGrant(other, { refresh_token: 'rt' })).refreshToken, 'rt');
  },
);

t.test('a request and its response are two steps', async (t) => {
  const { server, client } = setUp();
  const response = await tokenRequest(client, {
    ...{ grant_type: 'password', username: 'user', password: 'password' },
  });
  const { accessToken } = await processTokenResponse(client, response);
  await processRevocationResponse(client, await revocationRequest(client, { token: accessToken }));
  t.notOk(server.isActive(accessToken));
});

t.test("an error has the server's code, and its message nothing else of the server", async (t) => {
  const { client } = clientOf(() =>
    Response.json(
      { error: 'invalid_grant', error_description: 'bad s3cr3t' },
      { status: 400, headers: { 'retry-after': '2' } },
    ),
  );
  await t.rejects(clientCredentialsGrant(client), {
    ...{ name: 'TokenResponseError', code: 'invalid_grant', description: 'bad s3cr3t', status: 400 },
    ...{ message: 'invalid_grant', retryAfterMs: 2000 },
  });
  const { client: broken } = clientOf(answer('<p>s3cr3t', 'text/html', 502));
  await t.rejects(clientCredentialsGrant(broken), { message: 'HTTP status 502', retryable: true });
  const revoking = { ...client, revocationEndpoint: 'https://as.test/revoke' };
  const response = await revocationRequest(revoking, { token: 'x' });
  await t.rejects(processRevocationResponse(revoking, response), { name: 'RevocationError' });
});

const noTokens = {
  'no access_token': tokenAnswer({ access_token: undefined }),
  'an empty access_token': tokenAnswer({ access_token: '' }),
  'an unknown token_type': tokenAnswer({ token_type: 'mac' }),
  'a token response as text': answer('{"access_token":"at"}', 'text/plain'),
  'an error with a status of success': () => Response.json({ error: 'bad_verification_code' }),
};
for (const [what, reply] of Object.entries(noTokens)) {
  t.test(`${what} is rejected`, async (t) => {
    await t.rejects(clientCredentialsGrant(clientOf(reply).client), { name: 'TokenResponseError' });
  });
}

t.test('malformed JSON and long bodies are rejected', async (t) => {
  const { client } = clientOf(answer('{"access_token":', 'application/json'));
  await t.rejects(clientCredentialsGrant(client), { name: 'ParseError' });
  const { client: short } = clientOf(tokenAnswer({ filler: 'x'.repeat(100) }));
  await t.rejects(clientCredentialsGrant({ ...short, maxBodyBytes: 50 }), { name: 'ParseError' });
});

t.test('redirects are not followed', async (t) => {
  const { client, sent } = clientOf(() => Response.redirect('https://as.test/other', 307));
  await t.rejects(clientCredentialsGrant(client), {
    ...{ name: 'TokenResponseError', status: 307, message: /configure the final URL/ },
  });
  t.equal(sent.length, 1);
});

t.test('credentials are sent over https, or to this machine', async (t) => {
  const { client, sent } = clientOf(tokenAnswer());
  const insecure = { ...client, tokenEndpoint: 'http://as.test/token' };
  await t.rejects(clientCredentialsGrant(insecure), { name: 'ConfigurationError' });
  t.equal(sent.length, 0);
  await t.resolves(clientCredentialsGrant({ ...insecure, allowInsecure: true }));
  await t.resolves(clientCredentialsGrant({ ...client, tokenEndpoint: 'http://localhost:9/token' }));
  await t.rejects(clientCredentialsGrant({ ...client, tokenEndpoint: '/token' }), {
    name: 'ConfigurationError',
  });
});

t.test('a request ends with its deadline or signal, and a broken one is a ConnectionError', async (t) => {
  const { server, client } = setUp();
  server.inject({ effect: 'hang', times: 2 });
  await t.rejects(clientCredentialsGrant({ ...client, timeoutMs: 20 }), { name: 'TimeoutError' });
  const abort = new AbortController();
  const aborted = clientCredentialsGrant(client, {}, { signal: abort.signal });
  setTimeout(() => abort.abort(new Error('enough')), 20);
  await t.rejects(aborted, { name: 'AbortError', cause: { message: 'enough' } });
  const signal = AbortSignal.abort(new Error('before'));
  await t.rejects(clientCredentialsGrant(client, {}, { signal }), { cause: { message: 'before' } });
  t.equal(server.requests.length, 2, 'nothing was sent');
  server.inject({ effect: 'refuse' });
  await t.rejects(clientCredentialsGrant({ ...client, timeoutMs: 0 }), { name: 'ConnectionError' });
});

t.test('the deadline holds for the body as well', async (t) => {
  const fetch = async (_url: string, { signal }: RequestInit) => {
    const body = new ReadableStream({
      start: (controller) => signal?.addEventListener('abort', () => controller.error(signal.reason)),
    });
    return new Response(body, { headers: { 'content-type': 'application/json' } });
  };
  const client = { ...clientOf().client, fetch, timeoutMs: 20 };
  await t.rejects(clientCredentialsGrant(client), { name: 'TimeoutError' });
});

t.test('with DPoP, a Bearer token is rejected', async (t) => {
  const { client } = clientOf(tokenAnswer());
  const { fetch } = await createDpop({
    key: await generateDpopKey(),
    fetch: client.fetch ?? globalThis.fetch,
  });
  await t.rejects(clientCredentialsGrant({ ...client, fetch }), {
    ...{ name: 'TokenResponseError', message: /not bound to the key/ },
  });
  const { client: bound } = clientOf(tokenAnswer({ token_type: 'DPoP' }));
  const proving = await createDpop({ key: await generateDpopKey(), fetch: bound.fetch ?? globalThis.fetch });
  t.match(await clientCredentialsGrant({ ...bound, fetch: proving.fetch }), { tokenType: 'DPoP' });
});
