import { bool, int, list, type Setting, type SettingOptions, text } from '@tollgate/kit/settings';
import { lifetime, seconds, svc, withoutEffect } from './builders.ts';

const group = 'Access tokens';

/** An empty value is the default, too. */
function listOrDefault(
  options: SettingOptions<readonly string[]> & { readonly default: readonly string[] },
): Setting<readonly string[]> {
  const base = list(options);
  return Object.freeze({
    ...base,
    parse: (value) => (base.parse(value)?.length === 0 ? options.default : base.parse(value)),
  });
}

export const jwtSettings = {
  jwtSecret: text({
    ...svc('JWT_SECRET'),
    group,
    required: true,
    secret: true,
    doc: 'HS256 key. Signs tokens if JWT_KEYS is empty, and verifies tokens without a known `kid`. With JWT_KEYS it verifies only if one of them is an HS256 key.',
  }),
  jwtKeys: text({
    ...svc('JWT_KEYS'),
    group,
    default: '',
    secret: true,
    doc: 'JSON array of JWKs. The private key whose `key_ops` has `sign` signs tokens, all keys verify them. Reloaded when the folder of `-d` changes.',
  }),
  jwtKeysFile: text({
    ...svc('JWT_KEYS_FILE'),
    group,
    default: '',
    doc: 'File with the JWKs, instead of SVC_JWT_KEYS. Reloaded when it changes, so that keys can be rotated without a restart.',
  }),
  jwtKeyId: text({ ...svc('JWT_KEY_ID'), group, default: '', doc: '`kid` of JWT_SECRET.' }),
  jwtExpMs: lifetime({
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
    doc: 'Default audience. Users belong to the audience of their sign-up, and are not found after a change.',
  }),
  jwtIssuer: text({
    ...svc('JWT_ISSUER'),
    group,
    default: '',
    doc: 'Claim `iss`. Empty: no claim, or API_EXTERNAL_URL with SVC_JWT_ISSUER_REQUIRED.',
  }),
  jwtIssuerRequired: bool({
    ...svc('JWT_ISSUER_REQUIRED'),
    group,
    default: false,
    doc: 'Reject access tokens, also of administrators, whose `iss` is not SVC_JWT_ISSUER.',
  }),
  jwtAudienceRequired: bool({
    ...svc('JWT_AUDIENCE_REQUIRED'),
    group,
    default: false,
    doc: 'Reject access tokens, also of administrators, whose `aud` is neither SVC_JWT_AUD (`authenticated` if that is empty) nor one of SVC_JWT_AUDIENCES. Tokens of users without an audience then have the former.',
  }),
  jwtAudiences: list({
    ...svc('JWT_AUDIENCES'),
    group,
    default: [],
    doc: 'Further accepted values of `aud`, for users whose sign-up sent another one (`X-JWT-AUD`).',
  }),
  jwtAdminRoles: listOrDefault({
    ...svc('JWT_ADMIN_ROLES'),
    group,
    default: ['service_role', 'svc_admin', 'supabase_admin'],
    doc: 'Values of the claim `role` that are allowed to use `/admin`.',
  }),
  jwtValidMethods: list({
    ...svc('JWT_VALID_METHODS'),
    group,
    default: [],
    doc: 'Allowed signature algorithms. All keys must have one of them. Empty: the algorithms of the keys.',
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

export const sessionSettings = {
  refreshTokenRotationEnabled: bool({
    ...svc('SECURITY_REFRESH_TOKEN_ROTATION_ENABLED'),
    group: sessionGroup,
    default: true,
    doc: 'Refresh tokens can be used once. Reuse revokes the session.',
  }),
  refreshTokenReuseIntervalMs: seconds({
    ...svc('SECURITY_REFRESH_TOKEN_REUSE_INTERVAL'),
    group: sessionGroup,
    default: '10s',
    doc: 'Time in which concurrent refreshes with one token return the same successor. Later the token is accepted until its successor is used, because the response may have been lost. 0 disables both: any reuse revokes the session.',
  }),
  refreshTokenAlgorithmVersion: int({
    ...svc('SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION'),
    group: sessionGroup,
    default: 1,
    min: 0,
    max: 2,
    doc: 'Refresh tokens of new sessions. 1 (or 0): random tokens, stored one per row. 2: signed with a key of the session, which stores a counter only. Tokens of both versions are always accepted.',
  }),
  refreshTokenUpgradePercentage: int({
    ...svc('SECURITY_REFRESH_TOKEN_UPGRADE_PERCENTAGE'),
    group: sessionGroup,
    default: 100,
    min: 0,
    max: 100,
    doc: 'With version 2: percentage of version 1 sessions that are upgraded at their next refresh.',
  }),
  tokenDigests: bool({
    ...svc('SECURITY_TOKEN_DIGESTS'),
    group: sessionGroup,
    default: false,
    doc: 'New refresh tokens of version 1 and codes of PKCE flows have 160 bits, and are stored as digests: a reader of the database cannot use them. Earlier tokens are valid until they are used. GoTrue does not accept these tokens, so not with SVC_DB_SHARED_WITH_GOTRUE.',
  }),
  refreshTokenAllowReuse: bool({
    ...svc('SECURITY_REFRESH_TOKEN_ALLOW_REUSE'),
    group: sessionGroup,
    default: false,
    doc: 'Accept refresh tokens as GoTrue does: with a reuse interval of 0, until the successor is used; within the interval, also older tokens of version 1, which get the active one.',
  }),
  sessionTimeboxMs: seconds({
    ...svc('SESSIONS_TIMEBOX'),
    group: sessionGroup,
    default: '0s',
    doc: 'Maximum lifetime of a session. 0 means no limit.',
  }),
  sessionInactivityTimeoutMs: seconds({
    ...svc('SESSIONS_INACTIVITY_TIMEOUT'),
    group: sessionGroup,
    default: '0s',
    doc: 'Maximum time between two refreshes. 0 means no limit.',
  }),
  sessionAllowLowAalMs: seconds({
    ...svc('SESSIONS_ALLOW_LOW_AAL'),
    group: sessionGroup,
    default: '0s',
    doc: 'How long a session of a user with MFA can be refreshed without a second factor. 0 means no limit.',
  }),
  sessionSinglePerUser: bool({
    ...svc('SESSIONS_SINGLE_PER_USER'),
    group: sessionGroup,
    default: false,
    doc: 'Only the newest session of a user can be refreshed.',
  }),
  sessionTags: list({
    ...svc('SESSIONS_TAGS'),
    group: sessionGroup,
    default: [],
    doc: 'With SVC_SESSIONS_SINGLE_PER_USER: kinds of sessions, of each of which the newest can be refreshed. Set by the header `X-Svc-Session-Tag` at sign-in; defaults to the first.',
  }),
  statefulBearer: bool({
    ...svc('SECURITY_STATEFUL_BEARER'),
    group: sessionGroup,
    default: true,
    doc: 'Reject access tokens of ended sessions. Otherwise they are valid until they expire.',
  }),
};
