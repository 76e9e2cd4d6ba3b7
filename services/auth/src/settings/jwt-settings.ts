import { list, type Setting, type SettingOptions, text } from '@tollgate/kit/settings';
import { life } from './builders.ts';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

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
