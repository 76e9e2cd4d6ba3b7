import { ColumnCipher } from '../../src/keys/secrets.ts';

/** Encryption is off by default. */
export const unencrypted = new ColumnCipher({
  dbEncryptionEncrypt: false,
  dbEncryptionKeyId: '',
  dbEncryptionKey: '',
  dbEncryptionDecryptionKeys: {},
});
