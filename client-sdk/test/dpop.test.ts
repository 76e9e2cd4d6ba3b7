import { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, type JWK, jwtVerify } from 'jose';
import t from 'tap';
import { Client } from '../src/client.ts';
import { createDpop, generateDpopKey, type Jwk, type JwsAlgorithm } from '../src/dpop/dpop.ts';

const now = 1_800_000_000;
const currentDate = new Date(now * 1000);

type Answer = (request: { url: string; init: RequestInit; headers: Headers }) => Response;

/**
 * A DPoP fetch before a server that answers as told, and the proofs that reached it, verified by
 * another implementation.
 */
async function makeDpop(answers: Answer[], key?: Jwk) {
  const requests: { url: string; init: RequestInit; headers: Headers }[] = [];
  const dpop = await createDpop({
    key: key ?? (await generateDpopKey()),
    now: () => now,
    async fetch(url, init) {
      const request = { url, init, headers: new Headers(init.headers) };
      requests.push(request);
      return (answers.shift() ?? (() => new Response('ok')))(request);
    },
  });
  const proof = async (index: number) => {
    const jwt = requests[index]?.headers.get('dpop') ?? '';
    return (await jwtVerify(jwt, EmbeddedJWK, { typ: 'dpop+jwt', currentDate })).payload;
  };
  return { dpop, requests, proof };
}

function demand(nonce: string, status: 400 | 401): Answer {
  const headers = { 'dpop-nonce': nonce };
  if (status === 400) return () => Response.json({ error: 'use_dpop_nonce' }, { status, headers });
  return () =>
    new Response('', { status, headers: { ...headers, 'www-authenticate': 'DPoP error="use_dpop_nonce"' } });
}

for (const algorithm of ['ES256', 'ES384', 'EdDSA', 'RS256', 'PS256'] as const) {
  t.test(
    `a proof signed with ${algorithm} says what request it is for, and carries the public key only`,
    async (t) => {
      const key = await generateDpopKey(algorithm);
      const { dpop, requests, proof } = await makeDpop([], key);
      await dpop.fetch('https://as.test/token?x=1#y', { method: 'post', body: 'a=b' });
      t.match(await proof(0), { htm: 'POST', htu: 'https://as.test/token', iat: now, jti: /^[\w-]{22}$/ });
      const { alg, jwk } = decodeProtectedHeader(requests[0]?.headers.get('dpop') ?? '');
      t.equal(alg, algorithm);
      for (const secret of ['d', 'p', 'q', 'dp', 'dq', 'qi']) t.notOk(secret in (jwk ?? {}));
      t.equal(dpop.thumbprint, await calculateJwkThumbprint({ ...key } as JWK));
      t.match(requests[0]?.init, { method: 'post', body: 'a=b' });
    },
  );
}

t.test('a proof beside an access token holds its hash', async (t) => {
  const { dpop, proof } = await makeDpop([]);
  const headers = { authorization: 'DPoP Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU' };
  await dpop.fetch('https://api.test/things', { headers });
  // Token and hash of RFC 9449 §7.1.
  t.match(await proof(0), { htm: 'GET', ath: 'fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo' });
});

t.test('every request has a proof of its own', async (t) => {
  const { dpop, proof } = await makeDpop([]);
  for (const _ of [1, 2]) await dpop.fetch('https://as.test/token', { method: 'POST' });
  t.not((await proof(0)).jti, (await proof(1)).jti);
});

t.test('requests with other tokens, and plain GETs, stay as they are', async (t) => {
  const { dpop, requests } = await makeDpop([]);
  const init = { method: 'POST', headers: { authorization: 'Bearer x' } };
  await dpop.fetch('https://api.test/things', init);
  await dpop.fetch('https://as.test/jwks', {});
  t.notOk(requests.some(({ headers }) => headers.has('dpop')));
  t.equal(requests[0]?.init, init);
});

for (const status of [400, 401] as const) {
  t.test(`a ${status} that demands a nonce is retried once with it`, async (t) => {
    const { dpop, requests, proof } = await makeDpop([
      demand('n1', status),
      demand('n2', status),
      demand('n3', status),
    ]);
    const response = await dpop.fetch('https://as.test/token', { method: 'POST', body: 'a=b' });
    t.equal(response.status, status);
    t.equal(requests.length, 2);
    t.match([await proof(0), await proof(1)], [{ nonce: undefined }, { nonce: 'n1' }]);
    t.equal(requests[1]?.init.body, 'a=b');
  });
}

t.test('nonces are remembered by origin, and the last one counts', async (t) => {
  const give = (nonce: string) => () => new Response('', { headers: { 'dpop-nonce': nonce } });
  const { dpop, proof } = await makeDpop([give('as-1'), give('as-2'), give('api-1')]);
  const post = (url: string) => dpop.fetch(url, { method: 'POST' });
  await post('https://as.test/token');
  await post('https://as.test/token');
  await post('https://api.test/a');
  await post('https://as.test/other');
  await post('https://api.test/b');
  const nonces = await Promise.all([0, 1, 2, 3, 4].map(async (index) => (await proof(index)).nonce));
  t.same(nonces, [undefined, 'as-1', undefined, 'as-2', 'api-1']);
});

t.test('another error with a nonce is not retried because the code is spent', async (t) => {
  const headers = { 'dpop-nonce': 'n1' };
  const { dpop, requests } = await makeDpop([
    () => Response.json({ error: 'invalid_grant' }, { status: 400, headers }),
  ]);
  const response = await dpop.fetch('https://as.test/token', { method: 'POST' });
  t.same(await response.json(), { error: 'invalid_grant' }, 'and its body is still there to be read');
  t.equal(requests.length, 1);
});

t.test(
  'an error response with a huge body is returned and can be cancelled',
  { timeout: 60_000 },
  async (t) => {
    const chunk = new Uint8Array(40_000).fill(32);
    const endless = () => new ReadableStream({ pull: (controller) => controller.enqueue(chunk) });
    const headers = { 'dpop-nonce': 'n1', 'content-type': 'application/json' };
    const { dpop } = await makeDpop([() => new Response(endless(), { status: 400, headers })]);
    const response = await dpop.fetch('https://as.test/token', { method: 'POST' });
    t.equal(response.status, 400);
    await t.resolves(response.body?.cancel() ?? Promise.reject(new Error('no body')));
  },
);

t.test(
  'a stream cannot be sent twice, so the refusal is given; the nonce is kept for the next request',
  async (t) => {
    const { dpop, requests, proof } = await makeDpop([demand('n1', 401)]);
    const body = new Blob(['x']).stream();
    const init = {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { authorization: 'DPoP t' },
    } as RequestInit;
    t.equal((await dpop.fetch('https://api.test/upload', init)).status, 401);
    t.equal(requests.length, 1);
    await dpop.fetch('https://api.test/things', { headers: { authorization: 'DPoP t' } });
    t.match(await proof(1), { nonce: 'n1' });
  },
);

t.test('a client assertion is never sent twice: the Client repeats the request with a new one', async (t) => {
  const { dpop, requests, proof } = await makeDpop([
    demand('n1', 400),
    () => Response.json({ access_token: 'bound', token_type: 'DPoP' }),
  ]);
  const client = new Client({
    ...{ clientId: 'app', clientSecret: 'a secret of more than thirty-two bytes', site: 'https://as.test' },
    ...{ clientAuth: { method: 'client_secret_jwt' }, fetch: dpop.fetch, now: () => now },
  });
  t.equal((await client.clientCredentials.getToken()).token, 'bound');
  const assertions = requests.map(({ init }) =>
    new URLSearchParams(String(init.body)).get('client_assertion'),
  );
  t.equal(assertions.length, 2);
  t.not(assertions[0], assertions[1]);
  t.match(await proof(1), { nonce: 'n1' });
});

t.test('a server that keeps demanding nonces is an error', async (t) => {
  const { dpop, requests } = await makeDpop(
    Array.from({ length: 10 }, (_, index) => demand(`n${index}`, 400)),
  );
  const client = new Client({
    clientId: 'app',
    clientSecret: 's',
    site: 'https://as.test',
    fetch: dpop.fetch,
  });
  await t.rejects(client.clientCredentials.getToken(), {
    name: 'TokenResponseError',
    code: 'use_dpop_nonce',
  });
  t.equal(requests.length, 4);
});

t.test('headers of the caller are not modified', async (t) => {
  const { dpop } = await makeDpop([]);
  const headers = new Headers({ authorization: 'DPoP t' });
  await dpop.fetch('https://api.test/things', { headers });
  t.same([...headers.keys()], ['authorization']);
});

t.test('a client gets a DPoP token through a nonce demand and calls an API with it', async (t) => {
  const { dpop, requests, proof } = await makeDpop([
    demand('as-1', 400),
    () => Response.json({ access_token: 'bound', token_type: 'DPoP', expires_in: 60 }),
    demand('api-1', 401),
    () => Response.json({ ok: true }),
  ]);
  const client = new Client({
    clientId: 'app',
    clientSecret: 's',
    site: 'https://as.test',
    fetch: dpop.fetch,
    now: () => now,
  });
  const token = await client.clientCredentials.getToken();
  t.same((await token.get('/things')).parsed, { ok: true });
  t.equal(requests.length, 4);
  t.equal(requests[3]?.headers.get('authorization'), 'DPoP bound');
  t.match(
    [await proof(1), await proof(3)],
    [
      { nonce: 'as-1', htm: 'POST' },
      { nonce: 'api-1', htm: 'GET', ath: /./ },
    ],
  );
});

t.test('a stored key proves possession after a restart', async (t) => {
  const key = await generateDpopKey();
  const restored = await createDpop({ key: JSON.parse(JSON.stringify(key)) });
  t.equal(restored.thumbprint, (await createDpop({ key })).thumbprint);
});

t.test('unsuitable DPoP keys are rejected', async (t) => {
  const { d: _, ...publicKey } = await generateDpopKey();
  for (const key of [publicKey, {}, { kty: 'oct', k: 'AAAA' }, { kty: 'EC', crv: 'secp256k1', d: 'x' }]) {
    await t.rejects(createDpop({ key }), { name: 'ConfigurationError' });
  }
  await t.rejects(generateDpopKey('HS256'), { name: 'ConfigurationError' });
  await t.rejects(generateDpopKey('none' as JwsAlgorithm), { name: 'ConfigurationError' });
});

const curve = { name: 'ECDSA', namedCurve: 'P-256' } as const;

t.test('a key pair that cannot be exported signs proofs, and so does a function', async (t) => {
  const pair = await crypto.subtle.generateKey(curve, false, ['sign', 'verify']);
  const publicKey = await crypto.subtle.exportKey('jwk', pair.publicKey);
  const sign = async (data: Uint8Array<ArrayBuffer>) =>
    new Uint8Array(await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, pair.privateKey, data));
  for (const key of [pair, { privateKey: sign, publicKey }]) {
    let sentProof = '';
    const dpop = await createDpop({
      key,
      fetch: async (_url, init) => {
        sentProof = new Headers(init.headers).get('dpop') ?? '';
        return new Response();
      },
    });
    await dpop.fetch('https://as.test/token', { method: 'POST' });
    const { payload } = await jwtVerify(sentProof, pair.publicKey);
    t.equal(payload.htu, 'https://as.test/token');
    t.equal(dpop.thumbprint, await calculateJwkThumbprint(publicKey as JWK));
  }
});
