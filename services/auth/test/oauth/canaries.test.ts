// Other OAuth clients get tokens for machines, by the metadata of the server.
import { generateKeyPairSync } from 'node:crypto';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import t, { type Test } from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';
import { checkRequest, createMachine, oauthServer } from '../helpers/oauth-clients.ts';

const issuer = new URL('http://localhost:9999');
const algorithms = ['oauth2', 'oidc'] as const;
const resource = 'https://orders.example.com';

async function start(t: Test) {
  const server = await startAuthServer(t, oauthServer);
  /** The server listens elsewhere than its metadata says. */
  const reach = (url: string, options: object) => fetch(url.replace(issuer.origin, server.url), options);
  const machine = (more: object = {}) =>
    createMachine(server, { scopes: ['read', 'write'], audiences: [resource], ...more });
  return { server, reach, machine };
}

async function newKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'key-1', use: 'sig', alg: 'ES256' };
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  const key = await crypto.subtle.importKey('pkcs8', pkcs8, { name: 'ECDSA', namedCurve: 'P-256' }, false, [
    'sign',
  ]);
  return { jwks: { keys: [jwk] }, signer: { key, kid: 'key-1' } };
}

t.test('openid-client gets tokens by every method of authentication', async (t) => {
  const { server, reach, machine } = await start(t);
  const { jwks, signer } = await newKey();
  const byKey = await machine({ token_endpoint_auth_method: 'private_key_jwt', jwks });
  const [basic, post] = [
    await machine(),
    await machine({ token_endpoint_auth_method: 'client_secret_post' }),
  ];
  for (const algorithm of algorithms)
    for (const [{ client_id: id }, auth] of [
      [basic, openid.ClientSecretBasic(basic.client_secret)],
      [post, openid.ClientSecretPost(post.client_secret)],
      [byKey, openid.PrivateKeyJwt(signer)],
    ] as const) {
      const config = await openid.discovery(issuer, id, undefined, auth, {
        algorithm,
        execute: [openid.allowInsecureRequests],
        [openid.customFetch]: reach,
      });
      const token = await openid.clientCredentialsGrant(config, { scope: 'read', resource });
      t.match(token, { token_type: 'bearer', scope: 'read' });
      t.ok((token.expiresIn() ?? 0) > 800);
      const { status, headers } = await checkRequest(server, token.access_token);
      t.match([status, headers.get('x-auth-client-id')], [200, id], algorithm);
    }
});

t.test('oauth4webapi gets tokens, and reads errors', async (t) => {
  const { server, reach, machine } = await start(t);
  const { jwks, signer } = await newKey();
  const byKey = await machine({ token_endpoint_auth_method: 'private_key_jwt', jwks });
  const bySecret = await machine();
  const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: reach };
  const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...options });
  const as = await oauth.processDiscoveryResponse(issuer, found);
  const request = async (id: string, auth: oauth.ClientAuth, more: Record<string, string> = {}) => {
    const client = { client_id: id };
    const response = await oauth.clientCredentialsGrantRequest(as, client, auth, { ...more }, options);
    return oauth.processClientCredentialsResponse(as, client, response);
  };
  for (const [{ client_id: id }, auth] of [
    [bySecret, oauth.ClientSecretBasic(bySecret.client_secret)],
    [byKey, oauth.PrivateKeyJwt(signer)],
  ] as const) {
    const token = await request(id, auth, { scope: 'read write' });
    t.match(token, { token_type: 'bearer', scope: 'read write' });
    const { status, headers } = await checkRequest(server, token.access_token);
    t.match([status, headers.get('x-auth-client-id')], [200, id]);
  }
  const { client_id: id, client_secret: secret } = bySecret;
  const fail = (...of: Parameters<typeof request>) => request(...of).then(String, (error: unknown) => error);
  t.match(await fail(id, oauth.ClientSecretBasic(secret), { scope: 'other' }), {
    error: 'invalid_scope',
    status: 400,
  });
  t.match(await fail(id, oauth.ClientSecretPost('wrong')), { error: 'invalid_client', status: 401 });
  t.match(await fail(id, oauth.ClientSecretBasic('wrong')), { status: 401, cause: [{ scheme: 'basic' }] });
});
