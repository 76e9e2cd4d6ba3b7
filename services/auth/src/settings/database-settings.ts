import { bool, duration, int, oneOf, text } from '@tollgate/kit/settings';
import { bare, svc, svcOrBare } from './variable-names.ts';

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
