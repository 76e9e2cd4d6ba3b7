import { bool, duration, int, oneOf, pairs, type SettingsCheck, text } from '@tollgate/kit/settings';
import { isEncryptionKey } from '../keys/secrets.ts';
import { bare, svc, svcOrBare } from './builders.ts';
import type { passwordSettings } from './sign-in.ts';
import type { sessionSettings } from './tokens.ts';

const group = 'Database';

export const databaseSettings = {
  dbDriver: oneOf(['postgres'], { ...svc('DB_DRIVER'), group, required: true, doc: 'Database system.' }),
  databaseUrl: text({
    ...bare('DATABASE_URL', 'DB_DATABASE_URL'),
    group,
    required: true,
    secret: true,
    matches: {
      pattern: /^postgres(ql)?:\/\//,
      form: 'a connection string, postgres://user:password@host:port/database',
    },
    doc: 'Connection string. `sslmode` has the meaning of libpq: if unset, connections are encrypted if the server supports it; `verify-full` verifies its certificate. Of several hosts (`host:port,host:port`) the one that accepts writes is used, also after a failover; `target_session_attrs` may be `any`, `read-write` or `primary`, and changes nothing.',
  }),
  dbMaxPoolSize: int({
    ...svc('DB_MAX_POOL_SIZE'),
    group,
    default: 0,
    min: 0,
    max: 10_000,
    doc: 'Maximum number of connections. 0 means 20.',
  }),
  dbStartupTimeoutMs: duration({
    ...svc('DB_STARTUP_TIMEOUT'),
    group,
    default: '30s',
    max: '10m',
    doc: 'How long the start waits for an unavailable database. 0 disables retries.',
  }),
  dbNamespace: text({
    ...svcOrBare('DB_NAMESPACE'),
    group,
    default: 'auth',
    matches: { pattern: /^[a-z_][a-z0-9_]{0,62}$/, form: 'a schema name: lower-case letters, digits and _' },
    doc: 'Schema of all tables.',
  }),
  dbSharedWithGotrue: bool({
    ...svc('DB_SHARED_WITH_GOTRUE'),
    group,
    default: false,
    doc: 'Set if GoTrue uses the same database, now or after a rollback. One-time tokens and new password hashes are stored in the format of GoTrue (SHA-224 without a secret, bcrypt), and sign-ins at providers can start on one server and end on the other.',
  }),
  dbCleanupEnabled: bool({
    ...svc('DB_CLEANUP_ENABLED'),
    group,
    default: true,
    doc: 'Remove expired rows every 10 minutes, a day after they expired. Anonymous users are removed after 30 days without activity.',
  }),
};

const encryptionGroup = 'Database';

const keyForm = '32 bytes in base64url';

export const encryptionSettings = {
  dbEncryptionEncrypt: bool({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPT'),
    group: encryptionGroup,
    default: false,
    doc: 'Encrypt password hashes, secrets of second factors and keys of refresh tokens when they are written. Existing values are encrypted by `tollgate-auth admin reencrypt`.',
  }),
  dbEncryptionKeyId: text({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID'),
    group: encryptionGroup,
    default: '',
    matches: { pattern: /^[\w.-]{0,64}$/, form: 'an id of up to 64 letters, digits and `_.-`' },
    doc: 'Id of the encryption key, which is stored with each value.',
  }),
  dbEncryptionKey: text({
    ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY'),
    group: encryptionGroup,
    default: '',
    secret: true,
    doc: `Encryption key: ${keyForm}, for example from \`openssl rand -base64 32 | tr +/ -_\`.`,
  }),
  dbEncryptionDecryptionKeys: pairs({
    ...svc('SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS'),
    group: encryptionGroup,
    default: {},
    secret: true,
    doc: 'Keys for decryption only, `id:key,id:key`: those from before a key rotation. May include the encryption key.',
  }),
};

type Check = SettingsCheck<typeof encryptionSettings>;

type DigestCheck = SettingsCheck<typeof databaseSettings & typeof sessionSettings>;

/** A rollback would sign out every user. */
export const digestsUnlessShared: DigestCheck = (s, { problem, variableName }) =>
  s.tokenDigests && s.dbSharedWithGotrue
    ? problem(
        'tokenDigests',
        `false, because ${variableName('dbSharedWithGotrue')} is true and GoTrue reads tokens in the clear`,
      )
    : undefined;

type PasswordCheck = SettingsCheck<typeof databaseSettings & typeof passwordSettings>;

export const bytesThatBcryptReads: PasswordCheck = (s, { problem, variableName }) =>
  s.passwordMaxBytes > 72 && s.dbSharedWithGotrue
    ? problem(
        'passwordMaxBytes',
        `72, because ${variableName('dbSharedWithGotrue')} is true and bcrypt ignores further bytes`,
      )
    : undefined;

const keyId: Check = (s, { problem }) =>
  s.dbEncryptionEncrypt && s.dbEncryptionKeyId === ''
    ? problem('dbEncryptionKeyId', 'an id of the encryption key')
    : undefined;

const key: Check = (s, { problem }) => {
  const isNeeded = s.dbEncryptionEncrypt || s.dbEncryptionKey !== '';
  if (!isNeeded || isEncryptionKey(s.dbEncryptionKey)) return undefined;
  return problem('dbEncryptionKey', keyForm);
};

const decryptionKeys: Check = (s, { problem }) => {
  const expected = Object.entries(s.dbEncryptionDecryptionKeys)
    .map(([id, text]) => decryptionKeyProblem(s, { id, text }))
    .find((found) => found !== undefined);
  return expected === undefined ? undefined : problem('dbEncryptionDecryptionKeys', expected);
};

function decryptionKeyProblem(
  s: Parameters<Check>[0],
  { id, text }: { readonly id: string; readonly text: string },
): string | undefined {
  if (!isEncryptionKey(text)) return `the key ${id} to be ${keyForm}`;
  const isOther = id === s.dbEncryptionKeyId && s.dbEncryptionKey !== '' && text !== s.dbEncryptionKey;
  return isOther ? `the key ${id} to be the encryption key, or to have another id` : undefined;
}

export const encryptionChecks: readonly Check[] = [keyId, key, decryptionKeys];
