import { ColumnCipher } from '../../src/keys/column-encryption.ts';

/** Keeps everything as it is, which is the default. */
export const unencrypted = new ColumnCipher({
  dbEncryptionEncrypt: false,
  dbEncryptionKeyId: '',
  dbEncryptionKey: '',
  dbEncryptionDecryptionKeys: {},
});
