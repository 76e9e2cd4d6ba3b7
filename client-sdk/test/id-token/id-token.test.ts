import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import t from 'tap';
import { Client } from '../../src/client.ts';
import { tokenHash } from '../../src/id-token/claims.ts';
import { createIdTokenValidator, type JwsAlgorithm } from '../../src/id-token/id-token.ts';
import { createAuthorizationServer } from '../../src/testing/authorization-server.ts';

const now = 1_800_000_000;
const issuer = 'https://as.test';

function makeServer() {
  const server = createAuthorizationServer({ now: () => now });
  const client = new Client({
    ...{ clientId: 'client', clientSecret: 'secret', redirectUri: 'https://app.test/cb' },
    ...{ site: server.issuer, issuer: server.issuer, fetch: server.fetch, now: server.now },
    idTokenSignedResponseAlg: 'ES256',
  });
  const validateIdToken = createIdTokenValidator({ client, jwksUri: server.endpoints.jwks });
  const signIn = async () => {
    const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid' });
    return { callback: await server.authorize(url), transaction };
  };
  return { server, client, validateIdToken, signIn };
}

async function makeIssuer(algorithm: JwsAlgorithm) {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const client = new Client({
    ...{ clientId: 'app', issuer, now: () => now, idTokenSignedResponseAlg: algorithm },
  });
  const sign = (claims: Record<string, unknown>) =>
    new SignJWT({ iss: issuer, aud: 'app', sub: 'u1', iat: now, exp: now + 60, ...claims })
      .setProtectedHeader({ alg: algorithm })
      .sign(privateKey);
  return { client, sign, jwks: { keys: [await exportJWK(publicKey)] } };
}

t.test('sign-in returns a token with a validated ID token', async (t) => {
  const { client, validateIdToken, signIn } = makeServer();
  const { callback, transaction } = await signIn();
  const token = await client.authCode.completeAuthorization(callback, transaction, {
    validateIdToken,
    issuerRequired: true,
  });
  const claims = await validateIdToken(token.idToken ?? '', { nonce: transaction.nonce ?? '' });
  t.match(claims, { iss: issuer, sub: 'user', aud: 'client', nonce: transaction.nonce });
});

t.test("an ID token of another session's nonce fails the sign-in", async (t) => {
  const { client, validateIdToken, signIn } = makeServer();
  const { callback, transaction } = await signIn();
  const other = { ...transaction, nonce: 'other' };
  const completing = client.authCode.completeAuthorization(callback, other, { validateIdToken });
  await t.rejects(completing, { name: 'IdTokenError', claim: 'nonce' });
});

t.test(
  'the issuer may rotate its keys: the new key is looked for, the retired one no longer accepted',
  async (t) => {
    const { server, validateIdToken } = makeServer();
    const issue = async () => (await server.issueTokens({ scope: 'openid' })).id_token ?? '';
    const before = await issue();
    await validateIdToken(before);
    t.equal(server.count('jwks'), 1);
    server.rotateSigningKey();
    server.advance(31);
    t.equal((await validateIdToken(await issue())).sub, 'user');
    t.equal(server.count('jwks'), 2);
    await t.rejects(validateIdToken(before), { name: 'JwtError', reason: 'key_not_found' });
  },
);

t.test(
  'keys that cannot be loaded are an error of the connection, and the next check tries again',
  async (t) => {
    const { server, validateIdToken } = makeServer();
    const { id_token: idToken = '' } = await server.issueTokens({ scope: 'openid' });
    server.inject({ endpoint: 'jwks', effect: 'refuse' });
    await t.rejects(validateIdToken(idToken), { name: 'ConnectionError' });
    server.inject({ endpoint: 'jwks', effect: () => new Response('<html>', { status: 200 }) });
    await t.rejects(validateIdToken(idToken), { name: 'ParseError' });
    t.equal((await validateIdToken(idToken)).sub, 'user');
  },
);

t.test('an ID token expires by the clock plus the tolerance', async (t) => {
  const { server, validateIdToken } = makeServer();
  const { id_token: idToken = '' } = await server.issueTokens({ scope: 'openid' });
  server.advance(3629);
  await t.resolves(validateIdToken(idToken));
  server.advance(1);
  await t.rejects(validateIdToken(idToken), {
    name: 'IdTokenError',
    claim: 'exp',
    message: /expired 30 seconds ago/,
  });
});

for (const algorithm of ['RS256', 'PS512', 'ES384', 'EdDSA'] as const) {
  t.test(`at_hash and c_hash are compared by the hash of ${algorithm}`, async (t) => {
    const { client, sign, jwks } = await makeIssuer(algorithm);
    const validate = createIdTokenValidator({ client, jwks });
    const at_hash = await tokenHash('the-token', algorithm);
    const idToken = await sign({ at_hash, c_hash: await tokenHash('the-code', algorithm) });
    await t.resolves(validate(idToken, { accessToken: 'the-token', code: 'the-code' }));
    await t.resolves(validate(idToken));
    await t.rejects(validate(idToken, { accessToken: 'another' }), {
      name: 'IdTokenError',
      claim: 'at_hash',
    });
    await t.rejects(validate(idToken, { code: 'another' }), { name: 'IdTokenError', claim: 'c_hash' });
  });
}

t.test('at_hash matches the example of OpenID Connect Core A.3', async (t) => {
  t.equal(await tokenHash('jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y', 'RS256'), '77QmUPtjPfzWtF2AnpK9RQ');
});

t.test('HMAC is accepted only where it is named and there is a secret', async (t) => {
  const clientSecret = 'a secret of more than thirty-two bytes';
  const client = new Client({ clientId: 'app', issuer, now: () => now });
  const idToken = await new SignJWT({ iss: issuer, aud: 'app', sub: 'u1', iat: now, exp: now + 60 })
    .setProtectedHeader({ alg: 'HS256', kid: 'whatever' })
    .sign(new TextEncoder().encode(clientSecret));
  const named = createIdTokenValidator({ client, clientSecret, algorithms: ['HS256'] });
  t.equal((await named(idToken)).sub, 'u1');
  const { jwks } = await makeIssuer('RS256');
  await t.rejects(createIdTokenValidator({ client, jwks })(idToken), {
    name: 'JwtError',
    reason: 'algorithm',
  });
  const other = createIdTokenValidator({ client, clientSecret: `${clientSecret}!`, algorithms: ['HS256'] });
  await t.rejects(other(idToken), { name: 'JwtError', reason: 'signature' });
});

t.test('a validator without issuer or client id is rejected', (t) => {
  const client = new Client({ clientId: 'app', issuer });
  const refuses = (options: Partial<Parameters<typeof createIdTokenValidator>[0]>, message: RegExp) =>
    t.throws(() => createIdTokenValidator({ client, ...options }), { name: 'ConfigurationError', message });
  refuses({}, /jwksUri/);
  refuses({ client: new Client({ clientId: 'app' }), jwksUri: 'https://as.test/jwks' }, /issuer/);
  refuses({ client: new Client({ issuer }), jwksUri: 'https://as.test/jwks' }, /clientId/);
  refuses({ algorithms: [], jwksUri: 'https://as.test/jwks' }, /algorithms/);
  refuses({ algorithms: ['none' as JwsAlgorithm], jwksUri: 'https://as.test/jwks' }, /algorithms/);
  refuses({ algorithms: ['HS256'] }, /clientSecret/);
  refuses({ algorithms: ['HS256', 'RS256'], clientSecret: 'x', jwksUri: 'https://as.test/jwks' }, /mixes/);
  t.end();
});
