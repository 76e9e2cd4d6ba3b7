// Tokens that are bound to a key of the client (DPoP, RFC 9449).
import { AccessToken } from '@tollgate/oauth2-client';
import { discoverClient } from '@tollgate/oauth2-client/discovery';
import { createDpop, generateDpopKey } from '@tollgate/oauth2-client/dpop';
import { exportJWK, generateKeyPair } from 'jose';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import t from 'tap';
import { type Answer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { createProver, type Prover } from '../helpers/dpop.ts';
import {
  applicationUri,
  authorizationServer,
  authorize,
  createApplication,
  createMachine,
  openAuthorize,
  pkce,
  redeem,
  redirectParameter,
  requestToken,
} from '../helpers/oauth-clients.ts';
import { privateKeys } from '../helpers/signing-keys.ts';

const issuer = 'http://localhost:9999';
const tokenEndpoint = `${issuer}/oauth/token`;
const userinfo = `${issuer}/oauth/userinfo`;
const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange';
const accessTokenUrn = 'urn:ietf:params:oauth:token-type:access_token';
const stock = 'https://stock.example';

const settings = { ...authorizationServer, JWT_KEYS: privateKeys };
const server = await startAuthServer(t, settings);
/** Another replica, which requires nonces. */
const strict = await startAuthServer(t, {
  ...settings,
  OAUTH_SERVER_REQUIRE_DPOP_NONCE: 'true',
  DB_DATABASE_URL: server.databaseUrl,
});
const { accessToken: userToken, userId } = await signUp(server);
const publicClient = await createApplication(server, { token_endpoint_auth_method: 'none' });
const machine = await createMachine(server, {
  grant_types: ['client_credentials', exchangeGrant],
  audiences: [stock],
});
const prover = await createProver(server.clock.nowMs);
const thief = await createProver(server.clock.nowMs);

const send = (form: Readonly<Record<string, string>>, proof?: string, to = server): Promise<Answer> =>
  requestToken(to, form, proof === undefined ? {} : { dpop: proof });
const machineForm = { grant_type: 'client_credentials', ...pick(machine) };
const claimsOf = (token: unknown): Readonly<Record<string, unknown>> =>
  JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString());
const call = (method: string, path: string, headers: Readonly<Record<string, string>>) =>
  server.call(method, path, { headers });

function pick({ client_id, client_secret }: { client_id: string; client_secret: string }) {
  return { client_id, client_secret };
}

/** Gets a code of the public client. */
const newCode = (more: Readonly<Record<string, string>> = {}) =>
  authorize(server, userToken, { client_id: publicClient.client_id, scope: 'email', ...more });
const redeemWith = async (code: string, by?: Prover) =>
  send(
    {
      grant_type: 'authorization_code',
      client_id: publicClient.client_id,
      code,
      code_verifier: pkce.verifier,
    },
    await by?.prove(tokenEndpoint),
  );
const refresh = async (refreshToken: unknown, by?: Prover) =>
  send(
    { grant_type: 'refresh_token', client_id: publicClient.client_id, refresh_token: String(refreshToken) },
    await by?.prove(tokenEndpoint),
  );

/** Reaches the strict replica by its metadata. Libraries have the time of the system. */
function reach(url: string, options?: object): Promise<Response> {
  for (const { clock } of [server, strict]) clock.advance(Date.now() - clock.nowMs());
  return fetch(url.replace(issuer, strict.url), options);
}

t.test('every grant binds its tokens to the key of the proof', async (t) => {
  const cnf = { jkt: prover.thumbprint };
  const ofUser = await redeemWith(await newCode(), prover);
  const exchange = {
    ...{ ...pick(machine), grant_type: exchangeGrant, audience: stock },
    ...{ subject_token: String(ofUser.body.access_token), subject_token_type: accessTokenUrn },
  };
  const answers = {
    code: ofUser,
    refresh: await refresh(ofUser.body.refresh_token, prover),
    client: await send(machineForm, await prover.prove(tokenEndpoint)),
    exchange: await send(exchange, await prover.prove(tokenEndpoint)),
  };
  for (const [name, { status, body, text }] of Object.entries(answers)) {
    t.equal(status, 200, text);
    t.equal(body.token_type, 'DPoP', name);
    t.match(claimsOf(body.access_token), { cnf }, name);
  }
  const exchanged = await send(exchange);
  t.equal(exchanged.body.token_type, 'Bearer', 'the token of a service has its own key, or none');
  t.notOk('cnf' in claimsOf(exchanged.body.access_token));
  const introspect = async (token: unknown) =>
    (
      await server.call('POST', '/oauth/introspect', {
        body: new URLSearchParams({ ...pick(machine), token: String(token) }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
    ).body;
  t.match(await introspect(answers.exchange.body.access_token), { active: true, token_type: 'DPoP', cnf });
});

t.test('a proof is accepted once, by all replicas together', async (t) => {
  const proof = await prover.prove(tokenEndpoint);
  const answers = await Promise.all(Array.from({ length: 6 }, () => send(machineForm, proof)));
  t.same(answers.map(({ status }) => status).toSorted(), [200, 400, 400, 400, 400, 400]);
  const { body: demand, headers } = await send(machineForm, await prover.prove(tokenEndpoint), strict);
  t.match(demand, { error: 'use_dpop_nonce' });
  const nonce = headers.get('dpop-nonce') ?? '';
  const withNonce = await prover.prove(tokenEndpoint, { claims: { nonce } });
  t.equal((await send(machineForm, withNonce)).status, 200, 'the other replica accepts the nonce');
  t.match((await send(machineForm, withNonce, strict)).body, {
    error: 'invalid_dpop_proof',
    error_description: /jti was used/,
  });
  const again = await prover.prove(tokenEndpoint, { claims: { jti: 'one' } });
  const ofAnother = await thief.prove(tokenEndpoint, { claims: { jti: 'one' } });
  t.equal((await send(machineForm, again)).status, 200);
  t.equal((await send(machineForm, ofAnother)).status, 200, 'another key may have the same jti');
});

t.test('nonces of other servers are refused', async (t) => {
  const proveWith = (nonce: unknown) => prover.prove(tokenEndpoint, { claims: { nonce } });
  for (const nonce of ['x', '', 'eyJ7S_zG.eyJH0-Z.HX4w-7v', 5])
    for (const to of [server, strict])
      t.match(await send(machineForm, await proveWith(nonce), to), {
        status: 400,
        body: { error: 'use_dpop_nonce' },
      });
  const first = (await send(machineForm, await proveWith('x'), strict)).headers.get('dpop-nonce');
  const current = await send(machineForm, await proveWith(first), strict);
  t.equal(current.status, 200);
  t.equal(current.headers.get('dpop-nonce'), null);
});

t.test('a code is exchanged with the key of dpop_jkt only, and is not lost', async (t) => {
  const code = await newCode({ dpop_jkt: prover.thumbprint });
  t.match((await redeemWith(code)).body, { error: 'invalid_grant', error_description: /bound to a key/ });
  t.match((await redeemWith(code, thief)).body, { error: 'invalid_grant' });
  t.equal((await redeemWith(code, prover)).status, 200);
  const invalid = await openAuthorize(server, { client_id: publicClient.client_id, dpop_jkt: 'x' });
  t.equal(redirectParameter(invalid.headers.get('location'), 'error'), 'invalid_request');
});

t.test('a proof of a pushed request binds the code', async (t) => {
  const par = `${issuer}/oauth/par`;
  const push = (proof: string, more: Readonly<Record<string, string>> = {}) => {
    const request = { response_type: 'code', redirect_uri: applicationUri, scope: 'email' };
    const challenge = { code_challenge: pkce.challenge, code_challenge_method: 'S256' };
    const form = { client_id: publicClient.client_id, ...request, ...challenge, ...more };
    return server.call('POST', '/oauth/par', {
      body: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', dpop: proof },
    });
  };
  t.match((await push(await prover.prove(tokenEndpoint))).body, { error: 'invalid_dpop_proof' });
  const other = { dpop_jkt: thief.thumbprint };
  t.match((await push(await prover.prove(par), other)).body, { error: 'invalid_request' });
  const { body, text } = await push(await prover.prove(par), { dpop_jkt: prover.thumbprint });
  t.match(body, { request_uri: /^urn:/ }, text);
  const code = await newCode({ request_uri: String(body.request_uri) });
  t.match((await redeemWith(code, thief)).body, { error: 'invalid_grant' });
  t.equal((await redeemWith(code, prover)).status, 200);
});

t.test('refresh tokens of public clients are refreshed with their key only', async (t) => {
  const { body: first } = await redeemWith(await newCode(), prover);
  for (const by of [thief, undefined])
    t.match((await refresh(first.refresh_token, by)).body, {
      error: 'invalid_grant',
      error_description: /bound to a key/,
    });
  const second = await refresh(first.refresh_token, prover);
  t.equal(second.status, 200, 'the attempts did not end the session');
  const third = await refresh(second.body.refresh_token, prover);
  t.equal(third.status, 200);
  t.match((await refresh(first.refresh_token, thief)).body, { error: 'invalid_grant' });
  t.equal((await refresh(third.body.refresh_token, prover)).status, 200, 'nor did a used one');
});

t.test('a confidential client may change its key, which its authentication protects', async (t) => {
  const client = await createApplication(server);
  const code = await authorize(server, userToken, { client_id: client.client_id });
  const { body } = await redeem(server, client, code);
  t.equal(body.token_type, 'Bearer');
  const form = { ...pick(client), grant_type: 'refresh_token', refresh_token: String(body.refresh_token) };
  const refreshed = await send(form, await thief.prove(tokenEndpoint));
  t.match(claimsOf(refreshed.body.access_token), { cnf: { jkt: thief.thumbprint } });
});

t.test('a client with dpop_bound_access_tokens gets no bearer tokens', async (t) => {
  const bound = await createMachine(server, { dpop_bound_access_tokens: true });
  const form = { grant_type: 'client_credentials', ...pick(bound) };
  t.match(await send(form), { status: 400, body: { error: 'invalid_dpop_proof' } });
  t.equal((await send(form, await prover.prove(tokenEndpoint))).body.token_type, 'DPoP');
  const { body } = await call('GET', '/.well-known/oauth-authorization-server', {});
  t.ok(Object(body).dpop_signing_alg_values_supported.includes('ES256'));
});

t.test('userinfo accepts a bound token with a proof for it, and nothing else', async (t) => {
  const token = String((await redeemWith(await newCode(), prover)).body.access_token);
  const ask = async (proof: string | undefined, scheme = 'DPoP', path = '/oauth/userinfo') =>
    call('GET', path, {
      authorization: `${scheme} ${token}`,
      ...(proof !== undefined && { dpop: proof }),
    });
  const prove = (url = userinfo, by = prover, ofToken = token) =>
    by.prove(url, { method: 'GET', token: ofToken });
  t.match(await ask(await prove()), { status: 200, body: { sub: userId } });
  t.match(await ask(await prove(`${issuer}/user`), 'dpop', '/user'), { status: 200, body: { id: userId } });
  const proof = await prove();
  t.equal((await ask(proof)).status, 200);
  const refused = {
    'a replay': [proof, 'DPoP'],
    'as Bearer': [undefined, 'Bearer'],
    'as Bearer with a proof': [await prove(), 'Bearer'],
    'without proof': [undefined, 'DPoP'],
    'by another key': [await prove(userinfo, thief), 'DPoP'],
    'for another token': [await prove(userinfo, prover, userToken), 'DPoP'],
    'for another URL': [await prove(tokenEndpoint), 'DPoP'],
    'without ath': [await prover.prove(userinfo, { method: 'GET' }), 'DPoP'],
  } as const;
  for (const [name, [given, scheme]] of Object.entries(refused)) {
    const { status, headers } = await ask(given, scheme);
    t.equal(status, 401, name);
    t.match(
      headers.get('www-authenticate'),
      /^DPoP error="invalid_(?:token|dpop_proof)", algs=".*ES256/,
      name,
    );
  }
  const unbound = await call('GET', '/oauth/userinfo', {
    authorization: `DPoP ${userToken}`,
    dpop: await prove(userinfo, prover, userToken),
  });
  t.equal(unbound.status, 401, 'a bearer token with the scheme DPoP');
  const admin = await call('GET', '/admin/users', { authorization: `DPoP ${token}`, dpop: await prove() });
  t.equal(admin.status, 403, 'no administration');
});

t.test('openid-client signs in with nonces, PAR and a public client', async (t) => {
  const config = await openid.discovery(new URL(issuer), publicClient.client_id, undefined, openid.None(), {
    algorithm: 'oauth2',
    execute: [openid.allowInsecureRequests],
    [openid.customFetch]: reach,
  });
  const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'));
  const request = { redirect_uri: applicationUri, scope: 'email' };
  const challenge = { code_challenge: pkce.challenge, code_challenge_method: 'S256' };
  const url = await openid.buildAuthorizationUrlWithPAR(config, { ...request, ...challenge }, { DPoP });
  const code = await newCode({ request_uri: redirectParameter(url, 'request_uri') });
  const callback = new URL(`${applicationUri}?${new URLSearchParams({ code, iss: issuer })}`);
  const checks = { pkceCodeVerifier: pkce.verifier };
  const tokens = await openid.authorizationCodeGrant(config, callback, checks, undefined, { DPoP });
  t.equal(tokens.token_type, 'dpop');
  t.match(claimsOf(tokens.access_token), { cnf: { jkt: await DPoP.calculateThumbprint() } });
  const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '', undefined, { DPoP });
  t.match(await openid.fetchUserInfo(config, refreshed.access_token, userId, { DPoP }), {
    email: 'ada@example.com',
  });
  // The gateway has nonces, too.
  const api = new URL(`http://127.0.0.1:${strict.extAuthz.http}/orders?page=1`);
  const fetchApi = () =>
    openid.fetchProtectedResource(config, refreshed.access_token, api, 'GET', null, undefined, { DPoP });
  t.match(await fetchApi(), { status: 200 });
});

t.test('oauth4webapi gets a bound token for a machine, and reads errors', async (t) => {
  const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: reach };
  const url = new URL(issuer);
  const found = await oauth.discoveryRequest(url, { algorithm: 'oauth2', ...options });
  const as = await oauth.processDiscoveryResponse(url, found);
  const client: oauth.Client = { client_id: machine.client_id };
  const DPoP = oauth.DPoP(client, await oauth.generateKeyPair('EdDSA'));
  const auth = oauth.ClientSecretPost(machine.client_secret);
  const ask = async () => {
    const response = await oauth.clientCredentialsGrantRequest(as, client, auth, {}, { DPoP, ...options });
    return oauth.processClientCredentialsResponse(as, client, response);
  };
  const error: unknown = await ask().catch((thrown: unknown) => thrown);
  t.ok(oauth.isDPoPNonceError(error));
  t.match(await ask(), { token_type: 'dpop' });
});

t.test('our own client signs in by the FAPI 2.0 Security Profile', async (t) => {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const { client_id: clientId } = await createApplication(server, {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [{ ...(await exportJWK(publicKey)), kid: 'key-1' }] },
    dpop_bound_access_tokens: true,
    require_pushed_authorization_requests: true,
  });
  const key = await exportJWK(privateKey);
  const dpop = await createDpop({ key: await generateDpopKey(), fetch: reach });
  const client = await discoverClient(issuer, {
    clientId,
    fetch: dpop.fetch,
    requirePushedAuthorizationRequests: true,
    clientAuth: { method: 'private_key_jwt', algorithm: 'ES256', key, keyId: 'key-1', audience: issuer },
  });
  const { url, transaction } = await client.authCode.startAuthorization({
    ...{ redirect_uri: applicationUri, scope: 'openid email', dpop_jkt: dpop.thumbprint },
  });
  const answer = await server.call('GET', url.slice(issuer.length));
  const id = redirectParameter(answer.headers.get('location'), 'authorization_id');
  const path = `/oauth/authorizations/${id}`;
  await server.call('GET', path, { token: userToken });
  const decision = { token: userToken, body: { action: 'approve' } };
  const { body } = await server.call('POST', `${path}/consent`, decision);
  const token = await client.authCode.completeAuthorization(String(body.redirect_url), transaction);
  t.equal(token.tokenType, 'DPoP');
  const refreshed = await token.refresh();
  t.match((await refreshed.get(userinfo)).parsed, { sub: userId });
  const bearer = AccessToken.fromHash(client, { access_token: token.token, token_type: 'Bearer' });
  await t.rejects(bearer.get(userinfo), { status: 401, code: 'invalid_token' });
});
