import { bool, pairs, type SettingsCheck, text } from '@tollgate/kit/settings';
import { isEncryptionKey } from '../encryption/column-cipher.ts';
import { svc } from './variable-names.ts';

const group = 'Database';

const keyForm = '32 bytes in base64url';

/** Encryption of columns: password hashes, secrets of factors, and keys of refresh tokens. */
export const encryptionSettings = {
  dbEncryptionEncrypt: bool({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPT'),
    group,
    default: false,
    doc: 'Encrypt password hashes, secrets of second factors and keys of refresh tokens as they are written. What is there already follows with `tollgate-auth admin reencrypt`.',
  }),
  dbEncryptionKeyId: text({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID'),
    group,
    default: '',
    matches: { pattern: /^[\w.-]{0,64}$/, form: 'an id of up to 64 letters, digits and `_.-`' },
    doc: 'Id of the key that encrypts; it is kept with each value.',
  }),
  dbEncryptionKey: text({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY'),
    group,
    default: '',
    secret: true,
    doc: `The key that encrypts: ${keyForm}, from \`openssl rand -base64 32 | tr +/ -_\` for example.`,
  }),
  dbEncryptionDecryptionKeys: pairs({
    ...svc('SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS'),
    group,
    default: {},
    secret: true,
    doc: 'Keys that only decrypt, `id:key,id:key`: those from before a change of keys. The key that encrypts may be among them.',
  }),
};

type Check = SettingsCheck<typeof encryptionSettings>;

const keyId: Check = (s, { nameOf }) =>
  s.dbEncryptionEncrypt && s.dbEncryptionKeyId === ''
    ? { variable: nameOf('dbEncryptionKeyId'), expected: 'an id of the key that encrypts; it must be set' }
    : undefined;

const key: Check = (s, { nameOf }) => {
  const isNeeded = s.dbEncryptionEncrypt || s.dbEncryptionKey !== '';
  if (!isNeeded || isEncryptionKey(s.dbEncryptionKey)) return undefined;
  return { variable: nameOf('dbEncryptionKey'), value: '(hidden)', expected: keyForm };
};

const decryptionKeys: Check = (s, { nameOf }) => {
  const problem = Object.entries(s.dbEncryptionDecryptionKeys)
    .map(([id, text]) => decryptionKeyProblem(s, { id, text }))
    .find((found) => found !== undefined);
  if (problem === undefined) return undefined;
  return { variable: nameOf('dbEncryptionDecryptionKeys'), value: '(hidden)', expected: problem };
};

function decryptionKeyProblem(
  s: Parameters<Check>[0],
  { id, text }: { readonly id: string; readonly text: string },
): string | undefined {
  if (!isEncryptionKey(text)) return `the key ${id} to be ${keyForm}`;
  const isOther = id === s.dbEncryptionKeyId && s.dbEncryptionKey !== '' && text !== s.dbEncryptionKey;
  return isOther ? `the key ${id} to be the one that encrypts, or to have another id` : undefined;
}

/** What is checked of these settings together. */
export const encryptionChecks: readonly Check[] = [keyId, key, decryptionKeys];
