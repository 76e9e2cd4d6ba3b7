import { createColumnCipher } from '../../src/keys/column-encryption.ts';

/** Keeps everything as it is, which is the default. */
export const unencrypted = createColumnCipher({
  dbEncryptionEncrypt: false,
  dbEncryptionKeyId: '',
  dbEncryptionKey: '',
  dbEncryptionDecryptionKeys: {},
});
