import { randomBytes, webcrypto } from 'node:crypto';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { ColumnCipher, type EncryptionSettings, systemRandomness } from '../../src/keys/secrets.ts';

const newKey = (): string => randomBytes(32).toString('base64url');
const row = '11111111-1111-4111-8111-111111111111';
const otherRow = '22222222-2222-4222-8222-222222222222';

function cipherOf(settings: Partial<EncryptionSettings>) {
  return new ColumnCipher({
    dbEncryptionEncrypt: true,
    dbEncryptionKeyId: 'a',
    dbEncryptionKey: newKey(),
    dbEncryptionDecryptionKeys: {},
    ...settings,
  });
}

t.test('encryption is not deterministic, and a value can be decrypted in its row only', (t) => {
  const cipher = cipherOf({});
  const encrypted = cipher.encrypt(row, 'secret ü');
  t.notMatch(encrypted, 'secret');
  t.not(cipher.encrypt(row, 'secret ü'), encrypted);
  t.equal(cipher.decrypt(row, encrypted), 'secret ü');
  t.throws(() => cipher.decrypt(otherRow, encrypted));
  t.equal(cipher.encrypt(row, encrypted), encrypted, 'what is encrypted stays');
  t.end();
});

t.test('a value that was changed cannot be decrypted', (t) => {
  const cipher = cipherOf({});
  const encrypted = JSON.parse(cipher.encrypt(row, 'secret'));
  const data = Buffer.from(encrypted.data, 'base64');
  for (const changed of [
    {
      ...encrypted,
      data: Buffer.concat([data.subarray(0, 1).map((byte) => byte ^ 1), data.subarray(1)]).toString('base64'),
    },
    { ...encrypted, data: data.subarray(0, -1).toString('base64') },
    { ...encrypted, data: '' },
    { ...encrypted, nonce: randomBytes(12).toString('base64') },
  ])
    t.throws(() => cipher.decrypt(row, JSON.stringify(changed)), JSON.stringify(changed));
  t.end();
});

t.test('values have the format of GoTrue: AES-GCM with a key per row from HKDF-SHA-256', async (t) => {
  const key = newKey();
  const nonce = randomBytes(12);
  const { subtle } = webcrypto;
  const base = await subtle.importKey('raw', Buffer.from(key, 'base64url'), 'HKDF', false, ['deriveKey']);
  const derived = await subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: Buffer.from(row) },
    base,
    { name: 'AES-GCM', length: 256 },
    false,
    ['encrypt', 'decrypt'],
  );
  const data = Buffer.from(
    await subtle.encrypt({ name: 'AES-GCM', iv: nonce }, derived, Buffer.from('$2a$10$hash')),
  );
  const theirs = {
    key_id: 'a',
    alg: 'aes-gcm-hkdf',
    data: data.toString('base64'),
    nonce: nonce.toString('base64'),
  };
  const cipher = cipherOf({ dbEncryptionKey: key });
  t.equal(cipher.decrypt(row, JSON.stringify(theirs)), '$2a$10$hash');

  const ours = JSON.parse(cipher.encrypt(row, 'secret'));
  t.same(Object.keys(ours), ['key_id', 'alg', 'data', 'nonce']);
  const opened = await subtle.decrypt(
    { name: 'AES-GCM', iv: Buffer.from(ours.nonce, 'base64') },
    derived,
    Buffer.from(ours.data, 'base64'),
  );
  t.equal(Buffer.from(opened).toString(), 'secret');
});

t.test('after a key rotation old values can be decrypted and are not current', (t) => {
  const [old, current] = [newKey(), newKey()];
  const before = cipherOf({ dbEncryptionKey: old });
  const after = cipherOf({
    dbEncryptionKeyId: 'b',
    dbEncryptionKey: current,
    dbEncryptionDecryptionKeys: { a: old },
  });
  const encrypted = before.encrypt(row, 'secret');
  t.equal(after.decrypt(row, encrypted), 'secret');
  t.equal(after.isCurrent(encrypted), false);
  t.equal(after.isCurrent(after.encrypt(row, 'secret')), true);
  t.equal(after.isCurrent('secret'), false, 'a plain value is not current');
  t.throws(
    () => before.decrypt(row, after.encrypt(row, 'secret')),
    /encrypted with key b, which is missing from SVC_SECURITY/,
  );
  t.end();
});

t.test('without encryption values are stored as they are, and old ones can be decrypted', (t) => {
  const key = newKey();
  const encrypted = cipherOf({ dbEncryptionKey: key }).encrypt(row, 'secret');
  const plain = cipherOf({
    dbEncryptionEncrypt: false,
    dbEncryptionKeyId: '',
    dbEncryptionKey: '',
    dbEncryptionDecryptionKeys: { a: key },
  });
  t.equal(plain.encrypt(row, 'secret'), 'secret');
  t.equal(plain.decrypt(row, encrypted), 'secret');
  t.equal(plain.isCurrent('secret'), true);
  t.equal(plain.isCurrent(encrypted), false);
  for (const text of [
    '',
    '{',
    '{}',
    '{"alg":"aes-gcm-hkdf"}',
    '{"key_id":"a","data":"x","nonce":"x","alg":"other"}',
  ])
    t.equal(plain.decrypt(row, text), text, 'text that only resembles an encrypted value is plain');
  t.end();
});

t.test('every digit of a code is drawn from all ten digits', async (t) => {
  // A digit is missing at one position by chance once in 10^20 runs.
  const codes = Array.from({ length: 500 }, () => systemRandomness.otp(6));
  for (let position = 0; position < 6; position += 1)
    t.equal(new Set(codes.map((code) => code[position])).size, 10, `position ${position}`);
});

t.test('secrets and codes are from node:crypto', async (t) => {
  const src = join(import.meta.dirname, '../../src');
  for await (const file of glob('**/*.ts', { cwd: src }))
    t.notMatch(await readFile(join(src, file), 'utf8'), /Math\.random/, file);
  t.match(systemRandomness.otp(6), /^\d{6}$/);
  const drawn = Array.from({ length: 100 }, () => systemRandomness.otp(10));
  t.equal(new Set(drawn).size, drawn.length);
});
