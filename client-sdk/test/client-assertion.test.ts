import { decodeJwt, exportJWK, exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import t from 'tap';
import { clientAssertion, clientSecretJwt, privateKeyJwt } from '../src/client-auth/assertion.ts';
import type {
  ClientAuthContext,
  ClientAuthFunction,
  MutableTokenRequest,
} from '../src/client-auth/methods.ts';
import { ConfigurationError } from '../src/errors.ts';
import { signJwt } from '../src/jwt/sign.ts';

const now = 1_800_000_000;
const secret = 'a secret of more than thirty-two bytes';
const jwtBearer = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

function makeContext(changes: Partial<ClientAuthContext> = {}): ClientAuthContext {
  return {
    clientId: 'app',
    issuer: undefined,
    tokenEndpoint: 'https://as.example/token',
    now: () => now,
    ...changes,
  };
}

function makeRequest(body: Record<string, string> = {}): MutableTokenRequest {
  return {
    url: 'https://as.example/token',
    method: 'POST',
    headers: new Headers(),
    body: new URLSearchParams(body),
  };
}

const authenticate = async (
  auth: ClientAuthFunction,
  request: MutableTokenRequest,
  context: ClientAuthContext,
): Promise<void> => await auth(request, context);

function assertionOf(request: MutableTokenRequest): string {
  return request.body.get('client_assertion') ?? '';
}

t.test(
  'private_key_jwt sends an assertion that the public key verifies, with the client id beside it',
  async (t) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    const request = makeRequest({ grant_type: 'client_credentials' });
    const key = await exportPKCS8(privateKey);
    await authenticate(
      privateKeyJwt({
        key,
        algorithm: 'ES256',
        keyId: 'k1',
      }),
      request,
      makeContext(),
    );
    const { payload, protectedHeader } = await jwtVerify(assertionOf(request), publicKey, {
      currentDate: new Date(now * 1000),
    });
    t.same(protectedHeader, { alg: 'ES256', typ: 'JWT', kid: 'k1' });
    t.match(payload, {
      iss: 'app',
      sub: 'app',
      aud: 'https://as.example/token',
      iat: now,
      nbf: now,
      exp: now + 60,
    });
    t.match(payload.jti, /^[\w-]{43}$/);
    t.equal(request.body.get('client_assertion_type'), jwtBearer);
    t.equal(request.body.get('client_id'), 'app');
    t.equal(request.body.get('grant_type'), 'client_credentials');
  },
);

t.test('each request and each attempt gets a new assertion', async (t) => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const auth = { method: 'private_key_jwt', key: await exportJWK(privateKey), algorithm: 'ES256' } as const;
  const first = makeRequest();
  const second = makeRequest();
  await authenticate(privateKeyJwt(auth), first, makeContext());
  await authenticate(privateKeyJwt(auth), second, makeContext());
  t.not(decodeJwt(assertionOf(first)).jti, decodeJwt(assertionOf(second)).jti);
});

t.test('audience is the option, else the issuer, else the token endpoint', async (t) => {
  const context = makeContext({ issuer: 'https://as.example' });
  const byIssuer = makeRequest();
  await authenticate(clientSecretJwt(secret), byIssuer, context);
  t.equal(decodeJwt(assertionOf(byIssuer)).aud, 'https://as.example');
  const forTenants = makeRequest();
  const tenants = makeContext({ issuer: 'https://as.example/{tenantid}/v2.0' });
  await authenticate(clientSecretJwt(secret), forTenants, tenants);
  t.equal(decodeJwt(assertionOf(forTenants)).aud, tenants.tokenEndpoint);
  const bySetting = makeRequest();
  const audience = ['https://as.example', 'https://as.example/token'];
  await authenticate(clientSecretJwt(secret, { audience, lifetime: 10 }), bySetting, context);
  t.match(decodeJwt(assertionOf(bySetting)), { aud: audience, exp: now + 10 });
});

t.test('modify changes header and claims before they are signed', async (t) => {
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { extractable: true });
  const request = makeRequest();
  await authenticate(
    privateKeyJwt({
      key: await exportPKCS8(privateKey),
      algorithm: 'EdDSA',
      modify(header, claims) {
        header.typ = 'client-authentication+jwt';
        delete claims.nbf;
        claims.scope = 'x';
      },
    }),
    request,
    makeContext(),
  );
  const { payload, protectedHeader } = await jwtVerify(assertionOf(request), publicKey, {
    currentDate: new Date(now * 1000),
  });
  t.equal(protectedHeader.typ, 'client-authentication+jwt');
  t.notHas(payload, { nbf: now });
  t.equal(payload.scope, 'x');
});

t.test('client_secret_jwt signs with the secret and does not send it', async (t) => {
  const request = makeRequest();
  await authenticate(clientSecretJwt(secret, { algorithm: 'HS512' }), request, makeContext());
  const key = new TextEncoder().encode(secret);
  const { protectedHeader } = await jwtVerify(assertionOf(request), key, {
    currentDate: new Date(now * 1000),
  });
  t.equal(protectedHeader.alg, 'HS512');
  t.notOk(request.body.has('client_secret'));
});

t.test('assertion and client id of the caller are not replaced', async (t) => {
  const request = makeRequest({ client_assertion: 'mine', client_id: 'other' });
  await authenticate(clientSecretJwt(secret), request, makeContext());
  await authenticate(clientAssertion({ assertion: () => 'theirs' }), request, makeContext());
  t.equal(request.body.toString(), 'client_assertion=mine&client_id=other');
  const named = makeRequest({ client_id: 'other' });
  await authenticate(clientSecretJwt(secret), named, makeContext());
  t.equal(named.body.get('client_id'), 'other');
});

t.test('missing options and unsuitable keys are named in the error', async (t) => {
  const rejects = (promise: Promise<void>, message: RegExp) =>
    t.rejects(promise, { constructor: ConfigurationError, message });
  await rejects(
    authenticate(clientSecretJwt(secret), makeRequest(), makeContext({ clientId: undefined })),
    /set clientId/,
  );
  await rejects(authenticate(clientSecretJwt(undefined), makeRequest(), makeContext()), /set clientSecret/);
  await rejects(
    authenticate(privateKeyJwt({ key: 'x', algorithm: 'HS256' }), makeRequest(), makeContext()),
    /algorithm of a key pair/,
  );
  await rejects(
    authenticate(privateKeyJwt({ key: 'x', algorithm: 'RS256' }), makeRequest(), makeContext()),
    /expected a PEM/,
  );
});

t.test('client_assertion calls its function for each request', async (t) => {
  let count = 0;
  const auth = {
    method: 'client_assertion',
    assertion: async () => {
      count += 1;
      return `token-${count}\n`;
    },
  } as const;
  const first = makeRequest();
  const second = makeRequest();
  await authenticate(clientAssertion(auth), first, makeContext());
  await authenticate(
    clientAssertion({ ...auth, type: 'urn:example:type' }),
    second,
    makeContext({ clientId: undefined }),
  );
  t.equal(
    first.body.toString(),
    `client_assertion=token-1&client_assertion_type=${encodeURIComponent(jwtBearer)}&client_id=app`,
  );
  t.equal(second.body.toString(), 'client_assertion=token-2&client_assertion_type=urn%3Aexample%3Atype');
});

t.test(
  'a client assertion that is empty, fails or has expired is refused as worth trying again',
  async (t) => {
    const expired = await signJwt({ exp: now - 31 }, { algorithm: 'HS256', key: 'k' });
    const late = await signJwt({ exp: now - 29 }, { algorithm: 'HS256', key: 'k' });
    const run = (assertion: () => string) =>
      authenticate(clientAssertion({ assertion }), makeRequest(), makeContext());
    await t.rejects(
      run(() => expired),
      { constructor: ConfigurationError, message: /expired 31 seconds ago/, retryable: true },
    );
    await t.rejects(
      run(() => ' \n'),
      { constructor: ConfigurationError, message: /empty/, retryable: true },
    );
    const cause = new Error('no such file');
    const failing = () => {
      throw cause;
    };
    await t.rejects(run(failing), { constructor: ConfigurationError, cause, retryable: true });
    await t.resolves(
      run(() => late),
      'our clock may be ahead by half a minute',
    );
  },
);

t.test('a key that cannot be exported signs the assertion, and so does a function', async (t) => {
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
    'sign',
    'verify',
  ]);
  const sign = async (data: Uint8Array<ArrayBuffer>) =>
    new Uint8Array(await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, pair.privateKey, data));
  for (const key of [pair.privateKey, sign]) {
    const request = makeRequest();
    await authenticate(privateKeyJwt({ key, algorithm: 'ES256' }), request, makeContext());
    const { payload } = await jwtVerify(assertionOf(request), pair.publicKey, {
      currentDate: new Date(now * 1000),
    });
    t.equal(payload.sub, 'app');
  }
});

t.test('a function that fails, or returns DER, is a clear error', async (t) => {
  const failing = privateKeyJwt({ key: () => Promise.reject(new Error('KMS is down')), algorithm: 'ES256' });
  await t.rejects(authenticate(failing, makeRequest(), makeContext()), {
    name: 'ConfigurationError',
    retryable: true,
    cause: { message: 'KMS is down' },
  });
  const der = privateKeyJwt({ key: () => new Uint8Array(71), algorithm: 'ES256' });
  await t.rejects(authenticate(der, makeRequest(), makeContext()), {
    name: 'ConfigurationError',
    message: /64 bytes; convert it from DER/,
  });
});
