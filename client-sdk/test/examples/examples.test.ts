import { existsSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { exportPKCS8, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import t, { type Test } from 'tap';
import { type StartOptions, startAuthorizationServer } from '../../src/testing.ts';
import { startProvider } from '../integration/oidc-provider/support/start-provider.ts';
import { runExample, startExample } from './run-example.ts';

const credentials = { CLIENT_ID: 'client', CLIENT_SECRET: 'secret' };

async function startServer(t: Test, options: StartOptions = {}) {
  const server = await startAuthorizationServer(options);
  t.teardown(server.close);
  return { server, env: { ...credentials, ISSUER: server.issuer, API: `${server.endpoints.resource}/me` } };
}

t.test('client-credentials gets a token and calls an API with it', async (t) => {
  const { env } = await startServer(t);
  t.same(await runExample('client-credentials', env), { lines: ['client'], exitCode: 0 });
});

t.test('handle-errors says why there is no token', async (t) => {
  const { env } = await startServer(t);
  const { lines, exitCode } = await runExample('handle-errors', env);
  t.same(lines, ['refused with 401: invalid_client', 'no token: invalid_client']);
  t.equal(exitCode, 0);
});

t.test('keep-tokens-fresh asks once, and not at all when it is run again', async (t) => {
  const { server, env } = await startServer(t);
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const withStore = { ...env, STORE: join(folder.path, 'tokens') };
  t.same((await runExample('keep-tokens-fresh', withStore)).lines, ['20']);
  t.same((await runExample('keep-tokens-fresh', withStore)).lines, ['20']);
  t.equal(server.count('token'), 1);
  t.ok(existsSync(withStore.STORE));
});

t.test('private-key-jwt signs with the key of its file', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const keyFile = join(folder.path, 'key.pem');
  await writeFile(keyFile, await exportPKCS8(privateKey));
  const verifyAssertion = async (assertion: string) =>
    (await jwtVerify(assertion, publicKey)).payload.iss === 'signer';
  const { env } = await startServer(t, { clients: [{ clientId: 'signer', verifyAssertion }] });
  const { lines } = await runExample('private-key-jwt', { ...env, CLIENT_ID: 'signer', KEY_FILE: keyFile });
  t.same(lines, ['200']);
});

t.test('kubernetes example sends the token of its file', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwt = new SignJWT({ sub: 'system:serviceaccount:shop:orders' }).setProtectedHeader({ alg: 'ES256' });
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const tokenFile = join(folder.path, 'token');
  await writeFile(tokenFile, await jwt.setExpirationTime('1h').sign(privateKey));
  const verifyAssertion = async (assertion: string) =>
    (await jwtVerify(assertion, publicKey)).payload.sub === 'system:serviceaccount:shop:orders';
  const { env } = await startServer(t, { clients: [{ clientId: 'orders', verifyAssertion }] });
  const { lines } = await runExample('kubernetes', { ...env, CLIENT_ID: 'orders', TOKEN_FILE: tokenFile });
  t.same(lines, ['orders']);
});

t.test('mutual-tls example authenticates with its certificate', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { ca, server, client } = certificates;
  const registered = {
    ...{ client_id: 'certified', token_endpoint_auth_method: 'tls_client_auth' as const },
    ...{ tls_client_auth_san_dns: 'client.test', grant_types: ['client_credentials'] },
    ...{ redirect_uris: [], response_types: [] },
  };
  const tls = { cert: server.cert, key: server.key, ca: ca.cert };
  const provider = await startProvider({ clients: [registered], tls });
  t.teardown(provider.stop);
  const { lines } = await runExample('mutual-tls', {
    ...{ ISSUER: provider.issuer, CLIENT_ID: 'certified', API: `${provider.issuer}/jwks` },
    ...{ CERT: client.certFile, KEY: client.keyFile, CA: ca.certFile },
  });
  t.same(lines, ['200']);
});

t.test('sign-in example signs a user in once per start', async (t) => {
  const { server, env } = await startServer(t);
  const example = startExample('sign-in', { ...env, PORT: '0' });
  t.teardown(example.stop);
  const home = (await example.nextLine()) ?? '';
  const start = await fetch(home, { redirect: 'manual' });
  const cookie = start.headers.get('set-cookie')?.split(';')[0] ?? '';
  const callback = await server.authorize(start.headers.get('location') ?? '');
  const signedIn = await fetch(callback, { headers: { cookie } });
  t.equal(await signedIn.text(), 'signed in as user\n');
  const again = await fetch(callback, { headers: { cookie } });
  t.equal(again.status, 400);
});

t.test('sign-in-on-a-device waits for the user', async (t) => {
  const { server, env } = await startServer(t, { deviceIntervalSeconds: 1, clients: [{ clientId: 'tv' }] });
  const example = startExample('sign-in-on-a-device', { ...env, CLIENT_ID: 'tv' });
  t.teardown(example.stop);
  const userCode = / enter (\S+)$/.exec((await example.nextLine()) ?? '')?.[1] ?? '';
  server.decideDevice(userCode);
  t.same(await example.ended(), { lines: ['read'], exitCode: 0 });
});

t.test('test-your-code example passes', async (t) => {
  const { exitCode } = await runExample('test-your-code', {});
  t.equal(exitCode, 0);
});

t.test('every example is run here', async (t) => {
  const names = readdirSync(new URL('../../examples', import.meta.url)).map((file) =>
    file.replace('.ts', ''),
  );
  t.same(new Set(names), new Set(examplesRunHere));
});

const examplesRunHere = [
  'client-credentials',
  'handle-errors',
  'keep-tokens-fresh',
  'kubernetes',
  'mutual-tls',
  'private-key-jwt',
  'sign-in',
  'sign-in-on-a-device',
  'test-your-code',
];
