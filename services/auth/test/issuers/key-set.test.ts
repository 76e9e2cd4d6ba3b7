import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { parseKeySet } from '../../src/issuers/key-set.ts';

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = { ...ec.publicKey.export({ format: 'jwk' }), kid: 'key-1' };
const parse = (...keys: unknown[]) => parseKeySet(JSON.stringify({ keys }));

t.test('keys that cannot verify signatures are ignored with a reason', (t) => {
  const rsa = (modulusLength: number) =>
    generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' });
  const ignored: readonly (readonly [object, RegExp])[] = [
    [{ ...jwk, use: 'enc' }, /use is not sig/],
    [{ ...jwk, key_ops: ['encrypt'] }, /no verify/],
    [{ kty: 'oct', k: 'c2VjcmV0' }, /not supported/],
    [{ ...jwk, alg: 'HS256' }, /algorithm/],
    [{ ...jwk, alg: 'ES384' }, /algorithm/],
    [{ ...jwk, crv: 'secp256k1' }, /type or curve/],
    [{ ...jwk, x: 'AA' }, /not a public key/],
    [rsa(1024), /1024 bits/],
  ];
  for (const [key, reason] of ignored) {
    const parsed = parse(key, jwk);
    t.equal(parsed.keys.length, 1, String(reason));
    t.match(parsed.ignored, [{ reason }]);
  }
  t.equal(parse(rsa(2048)).keys.length, 1);
  t.end();
});

t.test('a private key that was published is used as a public one', (t) => {
  const [key] = parse({ ...ec.privateKey.export({ format: 'jwk' }), kid: 'oops' }).keys;
  t.match(key, { kid: 'oops', key: { type: 'public' } });
  t.end();
});

t.test('an empty list withdraws all keys', (t) => {
  t.same(parse(), { keys: [], ignored: [] });
  t.end();
});

t.test('a document that is not a key set is an error', (t) => {
  for (const text of ['', '<html>', '[]', 'null', '{}', '{"keys":{}}', '{"keys":[1]}'])
    t.throws(() => parseKeySet(text), { message: /key set/ }, text);
  t.throws(() => parse({ ...jwk, use: 'enc' }), { message: /no key that can verify/ });
  t.throws(() => parse(...Array.from({ length: 101 }, () => jwk)), { message: /101 keys, more than 100/ });
  t.end();
});
