import { generateKeyPairSync, type JsonWebKey } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { decodeProtectedHeader } from 'jose';
import t, { type Test } from 'tap';
import { SigningKeySource } from '../../src/keys/key-source.ts';
import { type AuthServer, jwtSecret, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';

interface Key extends JsonWebKey {
  readonly kid: string;
}

function makeKey(kid: string): Key {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  return { ...jwk, kid, alg: 'ES256' };
}

function signing(key: Key): JsonWebKey {
  return { ...key, key_ops: ['sign', 'verify'] };
}

function verifying({ d: _private, ...publicPart }: Key): JsonWebKey {
  return { ...publicPart, key_ops: ['verify'] };
}

/** A file of keys, which is replaced as a whole: what a reader finds is never half of it. */
async function keysFile(t: Test, keys: readonly JsonWebKey[]) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const path = join(folder.path, 'keys.json');
  const write = async (text: string): Promise<void> => {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  };
  await write(JSON.stringify(keys));
  return { path, write };
}

async function shownKids({ call }: AuthServer): Promise<string[]> {
  const { body } = await call('GET', '/.well-known/jwks.json');
  // Parsed boundary: a set of keys.
  return (body as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
}

async function awaitKids(server: AuthServer, kids: readonly string[]): Promise<void> {
  const what = `the keys ${kids} to be shown`;
  await awaitUntil(async () => String(await shownKids(server)) === String(kids), { what });
}

t.test('keys are replaced while the server runs, and sessions are kept', async (t) => {
  const [first, second] = [makeKey('first'), makeKey('second')];
  const file = await keysFile(t, [signing(first), verifying(second)]);
  const server = await startAuthServer(t, { JWT_KEYS_FILE: file.path });
  t.same(await shownKids(server), ['first', 'second'], 'the next one is known before it signs');
  const { accessToken: old } = await signUp(server);
  t.equal(decodeProtectedHeader(old).kid, 'first');
  t.equal((await server.call('GET', '/user', { token: old })).status, 200);

  await file.write(JSON.stringify([signing(second), verifying(first)]));
  await awaitKids(server, ['second', 'first']);
  const body = { email: 'ada@example.com', password: 'correct horse' };
  const answer = await server.call('POST', '/token?grant_type=password', { body });
  t.equal(decodeProtectedHeader(signedIn(answer).accessToken).kid, 'second');
  t.equal((await server.call('GET', '/user', { token: old })).status, 200, 'the old one verifies');

  await file.write(JSON.stringify([signing(second)]));
  await awaitKids(server, ['second']);
  t.match(await server.call('GET', '/user', { token: old }), {
    status: 403,
    body: { error_code: 'bad_jwt', msg: /no key has the kid of the token/ },
  });
  t.match(server.logs(), /"signs":"second","verify":\["second","first"\],"@message":"replaced signing keys"/);
});

t.test('OpenID Connect metadata name the issuer and its keys', async (t) => {
  const metadata = async (variables: Readonly<Record<string, string>>) =>
    (await (await startAuthServer(t, variables)).call('GET', '/.well-known/openid-configuration')).body;
  const expected = {
    issuer: 'http://localhost:9999',
    jwks_uri: 'http://localhost:9999/.well-known/jwks.json',
    id_token_signing_alg_values_supported: ['HS256'],
  };
  t.match(await metadata({}), expected);
  t.match(await metadata({ JWT_ISSUER: 'https://id.example.com' }), { issuer: 'https://id.example.com' });
});

t.test('invalid keys are ignored and logged', async (t) => {
  const file = await keysFile(t, [signing(makeKey('good'))]);
  const server = await startAuthServer(t, { JWT_KEYS_FILE: file.path });
  for (const [text, problem] of [
    ['[', 'a JSON array of JWKs'],
    ['', 'a JSON array of JWKs'],
    [JSON.stringify([verifying(makeKey('other'))]), 'exactly one key whose key_ops'],
  ] as const) {
    await file.write(text);
    const isLogged = (): boolean =>
      server.logs().split('rejected new signing keys').at(-2)?.includes(problem) ?? false;
    await awaitUntil(isLogged, { what: `${problem} to be logged` });
    t.same(await shownKids(server), ['good']);
  }
});

t.test('removing the signing key is a warning', async (t) => {
  const file = await keysFile(t, [signing(makeKey('gone'))]);
  const server = await startAuthServer(t, { JWT_KEYS_FILE: file.path });
  await file.write(JSON.stringify([signing(makeKey('new'))]));
  await awaitKids(server, ['new']);
  const isLogged = () => server.logs().includes('"kid":"gone","@message":"removed the previous signing key');
  await awaitUntil(isLogged, { what: 'the warning' });
});

t.test('ext_authz rejects cached tokens of a removed key', async (t) => {
  const file = await keysFile(t, [signing(makeKey('gone'))]);
  const server = await startAuthServer(t, { JWT_KEYS_FILE: file.path });
  const { accessToken } = await signUp(server);
  const check = async (): Promise<number> =>
    (
      await fetch(`http://127.0.0.1:${server.extAuthz.http}/`, {
        headers: { authorization: `Bearer ${accessToken}` },
      })
    ).status;
  t.equal(await check(), 200);
  await file.write(JSON.stringify([signing(makeKey('new'))]));
  await awaitKids(server, ['new']);
  t.equal(await check(), 401);
});

t.test('a short secret among new keys is a warning', async (t) => {
  const short = { kty: 'oct', alg: 'HS256', kid: 'weak', k: 'c2hvcnQ', key_ops: ['verify'] };
  const file = await keysFile(t, [signing(makeKey('one'))]);
  const server = await startAuthServer(t, { JWT_KEYS_FILE: file.path });
  t.notMatch(server.logs(), 'secret is too short');
  await file.write(JSON.stringify([signing(makeKey('two')), short]));
  const isLogged = () =>
    server.logs().includes('"variable":"SVC_JWT_KEYS_FILE","kid":"weak","leastBytes":32');
  await awaitUntil(isLogged, { what: 'the warning' });
});

t.test('an invalid key file is a startup error that names it', async (t) => {
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const file = await keysFile(t, []);
  const settings = { jwtSecret, jwtKeyId: '', jwtKeys: '', mode: 'production' } as const;
  const open = (jwtKeysFile: string) => SigningKeySource.open({ ...settings, jwtKeysFile }, { logger });
  await t.rejects(open(file.path), {
    message: `SVC_JWT_KEYS_FILE ${file.path}: expected a JSON array of JWKs`,
  });
  await t.rejects(open('/nowhere'), { message: /^SVC_JWT_KEYS_FILE \/nowhere: ENOENT/ });
});
