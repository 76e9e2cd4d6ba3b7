import { bool, int, list, type Setting, type SettingOptions, text } from '@tollgate/kit/settings';
import { life, seconds, svc, withoutEffect } from './builders.ts';

const group = 'Access tokens';

/** An empty list is the default, too. */
function listOrDefault(
  options: SettingOptions<readonly string[]> & { readonly default: readonly string[] },
): Setting<readonly string[]> {
  const base = list(options);
  return Object.freeze({
    ...base,
    parse: (value) => (base.parse(value)?.length === 0 ? options.default : base.parse(value)),
  });
}

/** JWTs: what they say and what signs them. */
export const jwtSettings = {
  jwtSecret: text({
    ...svc('JWT_SECRET'),
    group,
    required: true,
    secret: true,
    doc: 'Key of HS256; signs when JWT_KEYS is empty, and verifies tokens without a known `kid`; with JWT_KEYS, only if one of them is of HS256.',
  }),
  jwtKeys: text({
    ...svc('JWT_KEYS'),
    group,
    default: '',
    secret: true,
    doc: 'JSON array of JWKs; the private one whose `key_ops` has `sign` signs, all verify. Reloaded when the folder of `-d` changes.',
  }),
  jwtKeysFile: text({
    ...svc('JWT_KEYS_FILE'),
    group,
    default: '',
    doc: 'File with what SVC_JWT_KEYS would say, in its place: followed as it changes, so that keys change without a restart.',
  }),
  jwtKeyId: text({ ...svc('JWT_KEY_ID'), group, default: '', doc: '`kid` of the key JWT_SECRET.' }),
  jwtExpMs: life({
    ...svc('JWT_EXP'),
    group,
    default: '1h',
    min: '1s',
    doc: 'Lifetime of an access token.',
  }),
  jwtAud: text({
    ...svc('JWT_AUD'),
    group,
    default: '',
    doc: 'Default audience. Users belong to the one in which they signed up: once it is changed, they are not found.',
  }),
  jwtIssuer: text({ ...svc('JWT_ISSUER'), group, default: '', doc: 'Claim `iss`; left out when empty.' }),
  jwtAdminRoles: listOrDefault({
    ...svc('JWT_ADMIN_ROLES'),
    group,
    default: ['service_role', 'svc_admin', 'supabase_admin'],
    doc: 'Values of the claim `role` that may call `/admin`.',
  }),
  jwtValidMethods: list({
    ...svc('JWT_VALID_METHODS'),
    group,
    default: [],
    doc: 'Algorithms that a token may be signed with; all keys have to be of these. Empty: those of the keys.',
  }),
  jwtDefaultGroupName: text({
    ...svc('JWT_DEFAULT_GROUP_NAME'),
    group,
    default: 'authenticated',
    doc: 'Role of new users.',
  }),
  jwtAdminGroupName: withoutEffect(
    text({ ...svc('JWT_ADMIN_GROUP_NAME'), group, default: 'admin', doc: 'Group of administrators.' }),
  ),
};

const sessionGroup = 'Sessions and refresh tokens';

/** How long sessions live, and what a refresh token used twice means. */
export const sessionSettings = {
  refreshTokenRotationEnabled: bool({
    ...svc('SECURITY_REFRESH_TOKEN_ROTATION_ENABLED'),
    group: sessionGroup,
    default: true,
    doc: 'A refresh token is good for one refresh; a second use ends the session.',
  }),
  refreshTokenReuseIntervalMs: seconds({
    ...svc('SECURITY_REFRESH_TOKEN_REUSE_INTERVAL'),
    group: sessionGroup,
    default: '10s',
    doc: 'Time in which the previous refresh token may be exchanged again, for the same successor; 0 for never.',
  }),
  refreshTokenAlgorithmVersion: int({
    ...svc('SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION'),
    group: sessionGroup,
    default: 1,
    min: 0,
    max: 2,
    doc: 'Form of the refresh tokens of new sessions: 1 (or 0) a random text, kept in a row each; 2 signed with a key of the session, of which a counter is kept. Both forms are always taken.',
  }),
  refreshTokenUpgradePercentage: int({
    ...svc('SECURITY_REFRESH_TOKEN_UPGRADE_PERCENTAGE'),
    group: sessionGroup,
    default: 100,
    min: 0,
    max: 100,
    doc: 'With version 2: how many of the sessions of version 1 change over at their next refresh.',
  }),
  refreshTokenAllowReuse: bool({
    ...svc('SECURITY_REFRESH_TOKEN_ALLOW_REUSE'),
    group: sessionGroup,
    default: false,
    doc: 'The parent of the token that is good now may be exchanged at any age, for that token.',
  }),
  sessionTimeboxMs: seconds({
    ...svc('SESSIONS_TIMEBOX'),
    group: sessionGroup,
    default: '0s',
    doc: 'Longest life of a session; 0 for no end.',
  }),
  sessionInactivityTimeoutMs: seconds({
    ...svc('SESSIONS_INACTIVITY_TIMEOUT'),
    group: sessionGroup,
    default: '0s',
    doc: 'Longest time between two refreshes; 0 for any.',
  }),
  sessionAllowLowAalMs: seconds({
    ...svc('SESSIONS_ALLOW_LOW_AAL'),
    group: sessionGroup,
    default: '0s',
    doc: 'How long the session of a user with MFA may be refreshed without it; 0 for ever.',
  }),
  sessionSinglePerUser: bool({
    ...svc('SESSIONS_SINGLE_PER_USER'),
    group: sessionGroup,
    default: false,
    doc: 'The newest session of a user only is refreshed.',
  }),
  sessionTags: list({
    ...svc('SESSIONS_TAGS'),
    group: sessionGroup,
    default: [],
    doc: 'With SVC_SESSIONS_SINGLE_PER_USER: the newest of each of these, which the header `X-Svc-Session-Tag` of a sign-in names; the first when it does not.',
  }),
  statefulBearer: bool({
    ...svc('SECURITY_STATEFUL_BEARER'),
    group: sessionGroup,
    default: true,
    doc: 'Refuse access tokens of sessions that have ended; otherwise they are good until they expire.',
  }),
};
