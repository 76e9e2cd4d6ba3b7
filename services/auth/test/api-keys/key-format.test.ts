import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import t from 'tap';
import { createKey, digestKey, isWellFormedKey } from '../../src/api-keys/key-format.ts';

const random = { bytes: randomBytes };

t.test('a key has its prefix, 256 random bits and a checksum', (t) => {
  const key = createKey('tgk', random);
  t.match(key, /^tgk_[0-9A-Za-z]{49}$/);
  t.ok(isWellFormedKey(key, 'tgk'));
  t.not(createKey('tgk', random), key);
  const zero = createKey('tgk', { bytes: (count) => Buffer.alloc(count) });
  t.equal(zero.slice(0, -6), `tgk_${'0'.repeat(43)}`);
  const full = createKey('tgk', { bytes: (count) => Buffer.alloc(count, 0xff) });
  t.ok(isWellFormedKey(full, 'tgk'), 'the largest number fits into 43 digits');
  t.equal(decodeBase62(full.slice(-6)), crc32(full.slice(0, -6)));
  t.end();
});

t.test('keys with an error, of another prefix or another form are not well-formed', (t) => {
  const key = createKey('acme_live', random);
  t.ok(isWellFormedKey(key, 'acme_live'));
  for (let at = 'acme_live_'.length; at < key.length; at += 1) {
    const changed = key.slice(0, at) + (key[at] === 'x' ? 'y' : 'x') + key.slice(at + 1);
    t.notOk(isWellFormedKey(changed, 'acme_live'), `character ${at}`);
  }
  for (const text of ['', 'acme_live_', key.slice(0, -1), `${key}0`, ` ${key}`, key.replace('live', 'test')])
    t.notOk(isWellFormedKey(text, 'acme_live'), text);
  t.notOk(isWellFormedKey(key, 'acme'));
  t.end();
});

t.test('the digest is SHA-256 in hexadecimal', (t) => {
  t.equal(digestKey('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  t.end();
});

function decodeBase62(text: string): number {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  return [...text].reduce((value, digit) => value * 62 + digits.indexOf(digit), 0);
}
