import { ColumnCipher } from '../../src/keys/column-encryption.ts';

/** Encryption is off by default. */
export const unencrypted = new ColumnCipher({
  dbEncryptionEncrypt: false,
  dbEncryptionKeyId: '',
  dbEncryptionKey: '',
  dbEncryptionDecryptionKeys: {},
});
