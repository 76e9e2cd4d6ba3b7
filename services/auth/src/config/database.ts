import { bool, duration, int, oneOf, pairs, type SettingsCheck, text } from '@tollgate/kit/settings';
import { isEncryptionKey } from '../keys/column-encryption.ts';
import { bare, svc, svcOrBare } from './builders.ts';

const group = 'Database';

/** PostgreSQL. */
export const databaseSettings = {
  dbDriver: oneOf(['postgres'], { ...svc('DB_DRIVER'), group, required: true, doc: 'Kind of database.' }),
  databaseUrl: text({
    ...bare('DATABASE_URL', 'DB_DATABASE_URL'),
    group,
    required: true,
    secret: true,
    matches: {
      pattern: /^postgres(ql)?:\/\//,
      form: 'a connection string, postgres://user:password@host:port/database',
    },
    doc: 'Connection string. `sslmode` means what it means to libpq: encrypted where the server offers it when unset; `verify-full` looks at its certificate.',
  }),
  dbMaxPoolSize: int({
    ...svc('DB_MAX_POOL_SIZE'),
    group,
    default: 0,
    min: 0,
    max: 10_000,
    doc: 'Most connections to hold; 0 leaves it to the server, which then holds up to 20.',
  }),
  dbStartupTimeoutMs: duration({
    ...svc('DB_STARTUP_TIMEOUT'),
    group,
    default: '30s',
    max: '10m',
    doc: 'How long a start waits for a database that does not answer; 0 not at all.',
  }),
  dbNamespace: text({
    ...svcOrBare('DB_NAMESPACE'),
    group,
    default: 'auth',
    matches: { pattern: /^[a-z_][a-z0-9_]{0,62}$/, form: 'a schema name: small letters, digits and _' },
    doc: 'Schema that holds all tables.',
  }),
  dbSharedWithGotrue: bool({
    ...svc('DB_SHARED_WITH_GOTRUE'),
    group,
    default: false,
    doc: 'GoTrue serves the same database, or is to again: one-time tokens and new password hashes are kept in the form that it reads (SHA-224 without a secret, bcrypt).',
  }),
  dbCleanupEnabled: bool({
    ...svc('DB_CLEANUP_ENABLED'),
    group,
    default: true,
    doc: 'Remove rows that have expired: every 10 minutes, a day after their end. So go anonymous users who have not been seen for 30 days.',
  }),
};

const encryptionGroup = 'Database';

const keyForm = '32 bytes in base64url';

/** Encryption of columns: password hashes, secrets of factors, and keys of refresh tokens. */
export const encryptionSettings = {
  dbEncryptionEncrypt: bool({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPT'),
    group: encryptionGroup,
    default: false,
    doc: 'Encrypt password hashes, secrets of second factors and keys of refresh tokens as they are written. What is there already follows with `tollgate-auth admin reencrypt`.',
  }),
  dbEncryptionKeyId: text({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID'),
    group: encryptionGroup,
    default: '',
    matches: { pattern: /^[\w.-]{0,64}$/, form: 'an id of up to 64 letters, digits and `_.-`' },
    doc: 'Id of the key that encrypts; it is kept with each value.',
  }),
  dbEncryptionKey: text({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY'),
    group: encryptionGroup,
    default: '',
    secret: true,
    doc: `The key that encrypts: ${keyForm}, from \`openssl rand -base64 32 | tr +/ -_\` for example.`,
  }),
  dbEncryptionDecryptionKeys: pairs({
    ...svc('SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS'),
    group: encryptionGroup,
    default: {},
    secret: true,
    doc: 'Keys that only decrypt, `id:key,id:key`: those from before a change of keys. The key that encrypts may be among them.',
  }),
};

type Check = SettingsCheck<typeof encryptionSettings>;

const keyId: Check = (s, { variableName }) =>
  s.dbEncryptionEncrypt && s.dbEncryptionKeyId === ''
    ? {
        variable: variableName('dbEncryptionKeyId'),
        expected: 'an id of the key that encrypts; it must be set',
      }
    : undefined;

const key: Check = (s, { variableName }) => {
  const isNeeded = s.dbEncryptionEncrypt || s.dbEncryptionKey !== '';
  if (!isNeeded || isEncryptionKey(s.dbEncryptionKey)) return undefined;
  return { variable: variableName('dbEncryptionKey'), value: '(hidden)', expected: keyForm };
};

const decryptionKeys: Check = (s, { variableName }) => {
  const problem = Object.entries(s.dbEncryptionDecryptionKeys)
    .map(([id, text]) => decryptionKeyProblem(s, { id, text }))
    .find((found) => found !== undefined);
  if (problem === undefined) return undefined;
  return { variable: variableName('dbEncryptionDecryptionKeys'), value: '(hidden)', expected: problem };
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
