import { createHmac, generateKeyPairSync } from 'node:crypto';
import { algorithmNames } from '@tollgate/policies/routes-file/algorithms';
import type { IssuerDefinition } from '@tollgate/policies/routes-file/issuer';
import { parseRouteRules } from '@tollgate/policies/routes-file/parse';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import t from 'tap';
import * as cases from '../../../../client-sdk/test/id-token/claim-cases.ts';
import { trustIssuers } from '../../src/ext-authz/issuer-rules.ts';
import { parseKeySet } from '../../src/issuers/key-set.ts';
import { decodeJwt, verifyToken } from '../../src/issuers/verify.ts';

const now = cases.now;
const issuer = 'https://idp.example';

/** An issuer of a routes file, with what follows its name. */
function readIssuer(text: string) {
  const parsed = parseRouteRules(`issuers: [{ name: idp, ${text} }]`);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const [trusted] = trustIssuers(parsed.rules.issuers, { extAuthzDefaultPlan: 'free' });
  if (trusted === undefined) throw new Error('no issuer');
  return trusted;
}

const shop = readIssuer(`issuer: "${issuer}", audiences: [orders]`);

async function makeKey(alg: string, kid: string | null = 'key-1') {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), ...(kid !== null && { kid }) };
  const sign = (claims: object, header: object = {}) =>
    new SignJWT({ iss: issuer, aud: 'orders', sub: 'ada', iat: now, exp: now + 60, ...claims })
      .setProtectedHeader({ alg, ...(kid !== null && { kid }), ...header })
      .sign(privateKey);
  return { sign, jwk, keys: parseKeySet(JSON.stringify({ keys: [jwk] })).keys };
}

const key = await makeKey('ES256');

/** `accepted`, or the reason. */
function verify(
  token: string,
  {
    definition = shop.definition,
    keys = key.keys,
  }: { definition?: IssuerDefinition; keys?: typeof key.keys } = {},
): string {
  const jwt = decodeJwt(token);
  if (jwt === undefined) return 'not a JWT';
  const expected = { definition, issuer: definition.issuer ?? '', keys, nowMs: now * 1000 };
  const verified = verifyToken(jwt, expected);
  return verified.ok ? 'accepted' : verified.reason;
}

for (const alg of algorithmNames)
  t.test(`accepts a token signed with ${alg}`, async (t) => {
    const { sign, keys } = await makeKey(alg);
    t.equal(verify(await sign({}), { keys }), 'accepted');
    const [header, , signature] = (await sign({})).split('.');
    const forged = Buffer.from(JSON.stringify({ iss: issuer, aud: 'orders', sub: 'eve', exp: now + 60 }));
    t.equal(
      verify(`${header}.${forged.toString('base64url')}.${signature}`, { keys }),
      'signature is invalid',
    );
  });

/** An issuer that expects what the cases of the OAuth client expect. */
function definitionOf({ issuer: name, clientId, otherClientIds = [] }: typeof cases.expected) {
  const audiences = [clientId, ...otherClientIds].join(', ');
  const text = `issuer: "${name}", audiences: [${audiences}], token_type: id`;
  return readIssuer(text);
}

/** Cases about the sign-in that a token belongs to: a gateway has none. */
const ofSignIn = ['nonce', 'maxAgeSeconds', 'subject'];
const isOfSignIn = (settings: object) => ofSignIn.some((name) => name in settings);
/** Our tokens have no tolerance: they are cached up to `exp`. */
const stricter = ['an expiry within the tolerance'];

let applied = 0;
for (const [name, [changes, settings]] of Object.entries(cases.accepted)) {
  if (isOfSignIn(settings)) continue;
  applied += 1;
  t.test(`ID token: ${stricter.includes(name) ? 'rejects' : 'accepts'} ${name}`, async (t) => {
    const { definition } = definitionOf({ ...cases.expected, ...settings });
    const token = await key.sign({ ...cases.claims, ...changes });
    t.equal(verify(token, { definition }), stricter.includes(name) ? 'token is expired' : 'accepted');
  });
}

for (const [name, [claim, changes, settings]] of Object.entries(cases.refused)) {
  if (isOfSignIn(settings) || ['nonce', 'auth_time'].includes(claim)) continue;
  applied += 1;
  t.test(`ID token: rejects ${name}`, async (t) => {
    const trusted = definitionOf({ ...cases.expected, ...settings });
    const token = await key.sign({ ...cases.claims, ...changes });
    const result = verify(token, trusted);
    if (claim !== 'sub') t.match(result, new RegExp(`${claim}|expired|not valid yet`));
    // Subjects are a matter of the mapping.
    else t.match(trusted.accept({ ...cases.claims, ...changes }), { ok: false, reason: /names no user/ });
  });
}

t.test('most cases of the OAuth client apply', async (t) => {
  t.equal(applied, 24);
});

t.test('a token of another purpose is not an access token', async (t) => {
  const refused: readonly (readonly [object, object?])[] = [
    [{ at_hash: 'x' }],
    [{ nonce: 'n' }],
    [{ typ: 'ID' }],
    [{ typ: 'Refresh' }],
    [{ token_use: 'id' }],
    [{ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }],
    [{}, { typ: 'logout+jwt' }],
    [{}, { typ: 'dpop+jwt' }],
    [{}, { typ: 'JWE' }],
  ];
  for (const [claims, header] of refused)
    t.match(
      verify(await key.sign(claims, header)),
      /ID token|access token/,
      JSON.stringify([claims, header]),
    );
  for (const header of [{ typ: 'at+jwt' }, { typ: 'application/AT+JWT' }, { typ: 'JWT' }, {}])
    t.equal(verify(await key.sign({}, header)), 'accepted', JSON.stringify(header));
  t.equal(verify(await key.sign({ nonce: 'n', scope: 'openid' })), 'accepted', 'as of Keycloak before 24');
});

t.test('a token that is bound by another method than a key for DPoP is rejected', async (t) => {
  t.equal(verify(await key.sign({ cnf: { jkt: 'key' } })), 'accepted');
  for (const cnf of [{ 'x5t#S256': 'digest' }, { jwk: {} }, { jkt: 'key', 'x5t#S256': 'digest' }, {}, 'x'])
    t.equal(verify(await key.sign({ cnf })), 'cnf has another confirmation method than jkt');
});

t.test('token_type: at+jwt requires the type of RFC 9068, and id rejects it', async (t) => {
  const strict = readIssuer(`issuer: "${issuer}", audiences: [orders], token_type: at+jwt`);
  t.equal(verify(await key.sign({}, { typ: 'at+jwt' }), strict), 'accepted');
  t.equal(verify(await key.sign({}, { typ: 'JWT' }), strict), 'typ is not at+jwt');
  t.equal(verify(await key.sign({ iat: undefined }, { typ: 'at+jwt' }), strict), 'token has no iat claim');
  const id = readIssuer(`issuer: "${issuer}", audiences: [orders], token_type: id`);
  t.equal(verify(await key.sign({}, { typ: 'at+jwt' }), id), 'typ is not that of an ID token');
  t.equal(verify(await key.sign({ typ: 'Bearer' }), id), 'it is an access token');
});

t.test('confused algorithms are rejected', async (t) => {
  const rsa = await makeKey('RS256');
  const pem = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
    type: 'spki',
    format: 'pem',
  });
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = encode({ iss: issuer, aud: 'orders', sub: 'eve', exp: now + 60 });
  const hmac = (header: object, secret: string | Buffer) => {
    const input = `${encode(header)}.${claims}`;
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
  };
  const invalid = 'signing method is invalid';
  t.equal(verify(hmac({ alg: 'HS256', kid: 'key-1' }, pem), rsa), invalid);
  t.equal(verify(hmac({ alg: 'HS256', kid: 'key-1' }, JSON.stringify(rsa.jwk)), rsa), invalid);
  t.equal(verify(`${encode({ alg: 'none' })}.${claims}.AA`, rsa), invalid);
  t.equal(verify(`${encode({ alg: 'none' })}.${claims}.`, rsa), 'not a JWT');
  t.equal(verify(`${encode({ alg: ['RS256'], kid: 'key-1' })}.${claims}.AA`, rsa), invalid);
  t.equal(verify(hmac({ alg: 'ES256', kid: 'key-1' }, 'x'), rsa), 'no key has the kid of the token');
  t.equal(
    verify(hmac({ alg: 'RS256', kid: 'key-1', crit: ['exp'] }, 'x'), rsa),
    'critical header parameters are not supported',
  );
  const only = readIssuer(`issuer: "${issuer}", audiences: [orders], algorithms: [ES256]`);
  t.equal(verify(await rsa.sign({}), { ...only, ...rsa }), invalid, 'an algorithm that is not listed');
  const forAnother = parseKeySet(JSON.stringify({ keys: [{ ...rsa.jwk, alg: 'PS256' }] }));
  t.equal(
    verify(await rsa.sign({}), forAnother),
    'no key has the kid of the token',
    'the key is for another one',
  );
});

t.test('a key in the header of a token is ignored', async (t) => {
  const eve = await makeKey('ES256', 'eve');
  for (const header of [{ jwk: eve.jwk }, { jku: 'https://eve.example/jwks' }, { x5c: ['MA=='] }])
    t.equal(verify(await eve.sign({}, header)), 'no key has the kid of the token');
});

t.test('without a kid every key of the algorithm is tried, and only a few', async (t) => {
  const plain = await makeKey('ES256', null);
  const many = await Promise.all(Array.from({ length: 6 }, (_, index) => makeKey('ES256', `key-${index}`)));
  const three = [...key.keys, ...plain.keys];
  t.equal(verify(await plain.sign({}), { keys: three }), 'accepted');
  const others = many.flatMap(({ keys }) => keys);
  t.equal(verify(await plain.sign({}), { keys: others }), 'token has no kid, and its issuer has many keys');
});

t.test('iss is compared exactly, also with a path', async (t) => {
  const path = readIssuer('issuer: "https://idp.example/realms/a", audiences: [orders]');
  for (const iss of [
    'https://idp.example/realms/a/',
    'https://IDP.example/realms/a',
    'https://idp.example/realms/ab',
    '',
  ])
    t.equal(verify(await key.sign({ iss }), path), 'iss is not the issuer', iss);
  t.equal(verify(await key.sign({ iss: 'https://idp.example/realms/a' }), path), 'accepted');
});

t.test('tenants of Entra have issuers of their own', async (t) => {
  const pattern = 'https://login.microsoftonline.com/{tenantid}/v2.0';
  const of = (tenant: string) => `https://login.microsoftonline.com/${tenant}/v2.0`;
  const all = readIssuer(`issuer: "${pattern}", audiences: [orders]`);
  t.equal(verify(await key.sign({ iss: of('t-1'), tid: 't-1' }), all), 'accepted');
  for (const claims of [
    { iss: of('t-1'), tid: 't-2' },
    { iss: of('t-1') },
    { iss: pattern, tid: '{tenantid}' },
    { iss: of('a/b'), tid: 'a/b' },
    { iss: of(''), tid: '' },
  ])
    t.equal(verify(await key.sign(claims), all), 'iss is not the issuer', JSON.stringify(claims));
  const one = readIssuer(`issuer: "${pattern}", audiences: [orders], tenants: [t-1]`);
  t.equal(verify(await key.sign({ iss: of('t-1'), tid: 't-1' }), one), 'accepted');
  t.equal(verify(await key.sign({ iss: of('t-2'), tid: 't-2' }), one), 'tid is not an accepted tenant');
  const limited = parseKeySet(JSON.stringify({ keys: [{ ...key.jwk, issuer: of('t-1') }] }));
  t.equal(verify(await key.sign({ iss: of('t-1'), tid: 't-1' }), { ...all, ...limited }), 'accepted');
  t.equal(
    verify(await key.sign({ iss: of('t-2'), tid: 't-2' }), { ...all, ...limited }),
    'no key has the kid of the token',
    'Entra limits the key to a tenant',
  );
});

t.test('a text that is not a signed JWT is none', (t) => {
  for (const token of [
    '',
    'opaque',
    'a.b',
    'a.b.c',
    'a.b.c.d',
    '..',
    `${'a'.repeat(20_000)}.b.c`,
    'W10.W10.AA',
  ])
    t.equal(verify(token), 'not a JWT', token.slice(0, 20));
  t.end();
});
