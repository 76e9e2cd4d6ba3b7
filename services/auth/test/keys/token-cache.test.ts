import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { signJwt, TokenCache } from '../../src/keys/jwt.ts';
import { parseSigningKeys, type SigningKeys } from '../../src/keys/signing-keys.ts';

const nowMs = Date.parse('2026-03-04T05:06:07Z');
const now = nowMs / 1000;

function makeKeys(): SigningKeys {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  const jwtKeys = JSON.stringify([{ ...jwk, kid: 'one', alg: 'ES256', key_ops: ['sign', 'verify'] }]);
  const parsed = parseSigningKeys({ jwtSecret: 'unused', jwtKeys, jwtKeyId: '' });
  if (!parsed.ok) throw new Error(parsed.expected);
  return parsed.keys;
}

t.test('the signature of a repeated token is verified once', async (t) => {
  const keys = makeKeys();
  const tokens = new TokenCache();
  const token = signJwt({ sub: 'ada', exp: now + 60 }, keys);
  const first = tokens.verify(token, keys, nowMs);
  t.match(first, { ok: true, claims: { sub: 'ada' } });
  const again = tokens.verify(token, keys, nowMs);
  if (!first.ok || !again.ok) throw new Error('a good token was refused');
  t.equal(again.claims, first.claims, 'the claims were not decoded again');
});

t.test('exp and nbf of a cached token are checked each time', async (t) => {
  const keys = makeKeys();
  const tokens = new TokenCache();
  const token = signJwt({ exp: now + 60, nbf: now }, keys);
  t.match(tokens.verify(token, keys, nowMs - 1), { ok: false, reason: 'token is not valid yet' });
  t.match(tokens.verify(token, keys, nowMs), { ok: true });
  t.match(tokens.verify(token, keys, nowMs - 1), { ok: false, reason: 'token is not valid yet' });
  t.match(tokens.verify(token, keys, nowMs + 59_999), { ok: true });
  t.match(tokens.verify(token, keys, nowMs + 60_000), { ok: false, reason: 'token is expired' });
});

t.test('a token that differs from a cached one in one character is rejected', async (t) => {
  const keys = makeKeys();
  const tokens = new TokenCache();
  const token = signJwt({ sub: 'ada', exp: now + 60 }, keys);
  t.match(tokens.verify(token, keys, nowMs), { ok: true });
  const [header = '', , signature = ''] = token.split('.');
  const other = Buffer.from(JSON.stringify({ sub: 'eve', exp: now + 60 })).toString('base64url');
  t.match(tokens.verify(`${header}.${other}.${signature}`, keys, nowMs), { ok: false });
  const flipped = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
  t.match(tokens.verify(token.replace(signature, flipped), keys, nowMs), { ok: false });
  t.match(tokens.verify(`${token} `, keys, nowMs), { ok: false });
  t.match(tokens.verify(token, keys, nowMs), { ok: true });
});

t.test('a key rotation clears the cache', async (t) => {
  const keys = makeKeys();
  const tokens = new TokenCache();
  const token = signJwt({ sub: 'ada', exp: now + 60 }, keys);
  t.match(tokens.verify(token, keys, nowMs), { ok: true });
  t.match(tokens.verify(token, makeKeys(), nowMs), { ok: false, reason: 'signature is invalid' });
  t.match(tokens.verify(token, keys, nowMs), { ok: true }, 'rejections are not cached');
});

t.test('the size of the cache is limited', async (t) => {
  const keys = makeKeys();
  const tokens = new TokenCache({ capacityChars: 4_000 });
  const first = signJwt({ sub: 'ada', exp: now + 60 }, keys);
  const before = tokens.verify(first, keys, nowMs);
  for (let n = 0; n < 40; n++) tokens.verify(signJwt({ sub: String(n), exp: now + 60 }, keys), keys, nowMs);
  const after = tokens.verify(first, keys, nowMs);
  if (!before.ok || !after.ok) throw new Error('a good token was refused');
  t.not(after.claims, before.claims, 'it was evicted and verified again');
  t.same(after.claims, before.claims);
});
