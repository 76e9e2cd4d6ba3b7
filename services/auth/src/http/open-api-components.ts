import { type TSchema, Type } from 'typebox';
import { responses } from './open-api-responses.ts';
import { flag, maybe, object, pageMembers, text, time, uuid } from './open-api-types.ts';

const weakness = Type.Enum(['length', 'characters', 'pwned']);

const identity = Type.Object({
  identity_id: uuid,
  id: Type.String({ description: 'Id of the user at the provider.' }),
  user_id: uuid,
  identity_data: object,
  provider: text,
  email: maybe(text),
  last_sign_in_at: maybe(time),
  created_at: time,
  updated_at: time,
});

const factor = Type.Object({
  id: uuid,
  status: Type.Enum(['unverified', 'verified']),
  factor_type: Type.Enum(['totp', 'phone', 'webauthn', 'recovery_code']),
  friendly_name: maybe(text),
  phone: maybe(text),
  last_challenged_at: maybe(time),
  created_at: time,
  updated_at: time,
});

const passkey = Type.Object({
  id: uuid,
  friendly_name: maybe(text),
  created_at: time,
  last_used_at: maybe(time),
});

const user = Type.Object({
  id: uuid,
  aud: text,
  role: text,
  email: text,
  email_confirmed_at: maybe(time),
  invited_at: maybe(time),
  phone: Type.String({ description: 'E.164 without +.' }),
  phone_confirmed_at: maybe(time),
  confirmation_sent_at: maybe(time),
  confirmed_at: maybe(time),
  recovery_sent_at: maybe(time),
  new_email: maybe(text),
  email_change_sent_at: maybe(time),
  new_phone: maybe(text),
  phone_change_sent_at: maybe(time),
  reauthentication_sent_at: maybe(time),
  last_sign_in_at: maybe(time),
  app_metadata: object,
  user_metadata: object,
  factors: maybe(Type.Array(factor)),
  identities: Type.Array(identity),
  created_at: time,
  updated_at: time,
  banned_until: maybe(time),
  deleted_at: maybe(time),
  is_anonymous: flag,
});

const userList = Type.Object({
  users: Type.Array(user),
  aud: text,
  pagination: maybe(
    Type.Object(pageMembers, {
      description: 'Of a list by cursor. The last page has no `next_cursor`.',
    }),
  ),
});

const session = Type.Object({
  access_token: Type.String({ description: 'A JWT.' }),
  token_type: Type.Literal('bearer'),
  expires_in: Type.Integer({ description: 'Seconds.' }),
  expires_at: Type.Integer({ description: 'Unix time in seconds.' }),
  refresh_token: text,
  type: maybe(Type.String({ description: 'After an email verification: what was verified.' })),
  provider_token: maybe(Type.String({ description: 'The access token of an identity provider.' })),
  provider_refresh_token: maybe(text),
  weak_password: maybe(
    Type.Object(
      { message: text, reasons: Type.Array(weakness) },
      { description: 'The password is accepted, and no longer meets the requirements.' },
    ),
  ),
  recovery_codes_remaining: maybe(Type.Integer({ description: 'After a recovery code.' })),
  user,
});

const settings = Type.Object({
  external: Type.Record(Type.String(), flag),
  disable_signup: flag,
  autoconfirm: flag,
  mailer_autoconfirm: flag,
  phone_autoconfirm: flag,
  sms_provider: text,
  saml_enabled: flag,
  saml_private_key_next_configured: flag,
  passkeys_enabled: flag,
});

const actionLink = Type.Object({
  ...user.properties,
  action_link: Type.String({ format: 'uri' }),
  email_otp: text,
  hashed_token: text,
  verification_type: text,
  redirect_to: text,
});

const reasons = maybe(Type.Object({ reasons: Type.Array(weakness) }));

const error = Type.Object(
  {
    code: Type.Integer({ description: 'The HTTP status.' }),
    error_code: Type.String({ description: 'Stable; docs/errors.md lists them.' }),
    msg: text,
    error_id: maybe(Type.String({ description: 'Id of the request in the server log.' })),
    weak_password: reasons,
  },
  { description: 'Without an API version.' },
);

const versionedError = Type.Object(
  {
    code: Type.String({ description: 'Stable; docs/errors.md lists them.' }),
    message: text,
    weak_password: reasons,
  },
  { description: 'With `X-Svc-Api-Version: 2024-01-01` or later.' },
);

const oauthError = Type.Object({ error: text, error_description: text }, { description: 'RFC 6749 §5.2.' });

/** Schemas by their name in the document. */
export const components = {
  ...responses,
  Identity: identity,
  IdentityList: Type.Object({ identities: Type.Array(identity) }),
  User: user,
  UserList: userList,
  Session: session,
  Factor: factor,
  Passkey: passkey,
  Settings: settings,
  ActionLink: actionLink,
  Error: error,
  VersionedError: versionedError,
  OAuthError: oauthError,
} as const satisfies Record<string, TSchema>;

export type ComponentName = keyof typeof components;
