import { randomBytes, webcrypto } from 'node:crypto';
import t from 'tap';
import { createColumnCipher, type EncryptionSettings } from '../../src/keys/column-encryption.ts';

const newKey = (): string => randomBytes(32).toString('base64url');
const row = '11111111-1111-4111-8111-111111111111';
const otherRow = '22222222-2222-4222-8222-222222222222';

function cipherOf(settings: Partial<EncryptionSettings>) {
  return createColumnCipher({
    dbEncryptionEncrypt: true,
    dbEncryptionKeyId: 'a',
    dbEncryptionKey: newKey(),
    dbEncryptionDecryptionKeys: {},
    ...settings,
  });
}

t.test('a value is sealed differently each time, and opens in its row only', (t) => {
  const cipher = cipherOf({});
  const sealed = cipher.seal(row, 'secret ü');
  t.notMatch(sealed, 'secret');
  t.not(cipher.seal(row, 'secret ü'), sealed);
  t.equal(cipher.open(row, sealed), 'secret ü');
  t.throws(() => cipher.open(otherRow, sealed));
  t.equal(cipher.seal(row, sealed), sealed, 'what is sealed stays');
  t.end();
});

t.test('a value that was changed does not open', (t) => {
  const cipher = cipherOf({});
  const sealed = JSON.parse(cipher.seal(row, 'secret'));
  const data = Buffer.from(sealed.data, 'base64');
  for (const changed of [
    {
      ...sealed,
      data: Buffer.concat([data.subarray(0, 1).map((byte) => byte ^ 1), data.subarray(1)]).toString('base64'),
    },
    { ...sealed, data: data.subarray(0, -1).toString('base64') },
    { ...sealed, data: '' },
    { ...sealed, nonce: randomBytes(12).toString('base64') },
  ])
    t.throws(() => cipher.open(row, JSON.stringify(changed)), JSON.stringify(changed));
  t.end();
});

t.test('the form is that of GoTrue: AES-GCM with a key that HKDF-SHA-256 derives for the row', async (t) => {
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
  t.equal(cipher.open(row, JSON.stringify(theirs)), '$2a$10$hash');

  const ours = JSON.parse(cipher.seal(row, 'secret'));
  t.same(Object.keys(ours), ['key_id', 'alg', 'data', 'nonce']);
  const opened = await subtle.decrypt(
    { name: 'AES-GCM', iv: Buffer.from(ours.nonce, 'base64') },
    derived,
    Buffer.from(ours.data, 'base64'),
  );
  t.equal(Buffer.from(opened).toString(), 'secret');
});

t.test('after a change of keys the old one still opens, and says that it is not current', (t) => {
  const [old, current] = [newKey(), newKey()];
  const before = cipherOf({ dbEncryptionKey: old });
  const after = cipherOf({
    dbEncryptionKeyId: 'b',
    dbEncryptionKey: current,
    dbEncryptionDecryptionKeys: { a: old },
  });
  const sealed = before.seal(row, 'secret');
  t.equal(after.open(row, sealed), 'secret');
  t.equal(after.isCurrent(sealed), false);
  t.equal(after.isCurrent(after.seal(row, 'secret')), true);
  t.equal(after.isCurrent('secret'), false, 'nor is what was never encrypted');
  t.throws(
    () => before.open(row, after.seal(row, 'secret')),
    /encrypted with the key b, which is not in SVC_SECURITY/,
  );
  t.end();
});

t.test('without encryption values stay as they are, and those of before open', (t) => {
  const key = newKey();
  const sealed = cipherOf({ dbEncryptionKey: key }).seal(row, 'secret');
  const plain = cipherOf({
    dbEncryptionEncrypt: false,
    dbEncryptionKeyId: '',
    dbEncryptionKey: '',
    dbEncryptionDecryptionKeys: { a: key },
  });
  t.equal(plain.seal(row, 'secret'), 'secret');
  t.equal(plain.open(row, sealed), 'secret');
  t.equal(plain.isCurrent('secret'), true);
  t.equal(plain.isCurrent(sealed), false);
  for (const text of [
    '',
    '{',
    '{}',
    '{"alg":"aes-gcm-hkdf"}',
    '{"key_id":"a","data":"x","nonce":"x","alg":"other"}',
  ])
    t.equal(plain.open(row, text), text, 'and what only looks like a sealed one is what it is');
  t.end();
});
