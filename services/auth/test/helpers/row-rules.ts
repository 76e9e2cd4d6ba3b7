import { providerNames } from '../../src/identity-providers/registry.ts';
import schema from '../testdata/gotrue-schema/2026-06.json' with { type: 'json' };
import neverNull from '../testdata/gotrue-schema/never-null.json' with { type: 'json' };
import laterSchema from '../testdata/gotrue-schema/recovery-codes.json' with { type: 'json' };

export const gotrueTables = Object.keys({ ...schema.tables, ...laterSchema.tables });

/**
 * How hashes of codes and links are stored: by this server, as GoTrue stores them (in a shared
 * database), or by both in one database.
 */
export type HashStorage = 'own' | 'shared' | 'mixed';

/** Condition in SQL of each column by table. A condition that is null is met. */
type ColumnConditions = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** By the beginning of the type's name. GoTrue writes times as JSON, which ends with year 9999. */
const typeConditions: Readonly<Record<string, (column: string) => string>> = {
  timestamp: (column) => `isfinite(${column}) and ${column} > '1970-01-02' and ${column} < '10000-01-01'`,
  json: (column) => `json_typeof(${column}::json) = 'object'`,
};

/** JSON that GoTrue reads into a list. */
const jsonArrays = ['webauthn_credentials.transports'];

const uuid = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** E.164 without the plus. */
const phone = '[1-9][0-9]{1,14}';
const email = '[^A-Z@[:space:]]+@[^A-Z@[:space:]]+';
/** SHA-256 in base64url. */
const digest = '[A-Za-z0-9_-]{43}';
const grant =
  '(authorization_code|refresh_token|client_credentials|urn:ietf:params:oauth:grant-type:(device_code|token-exchange|jwt-bearer))';
const base64 = '[A-Za-z0-9+/]+={0,2}';
const encrypted = `\\{"key_id":"[^"]+","alg":"aes-gcm-hkdf","data":"${base64}","nonce":"${base64}"\\}`;
const passwordHash = [
  '\\$2[aby]\\$[0-9]{2}\\$[./A-Za-z0-9]{53}',
  `\\$argon2id?\\$v=19\\$m=[0-9]+,t=[0-9]+,p=[0-9]+\\$${base64}\\$${base64}`,
  `\\$fbscrypt\\$v=1,n=[0-9]+,r=[0-9]+,p=[0-9]+(,ss=${base64})?,sk=${base64}\\$${base64}\\$${base64}`,
  encrypted,
].join('|');
const tokenHashes: Readonly<Record<HashStorage, string>> = {
  own: '(pkce_)?sha256:[0-9a-f]{64}',
  shared: '(pkce_)?[0-9a-f]{56}',
  mixed: '(pkce_)?(sha256:[0-9a-f]{64}|[0-9a-f]{56})',
};

/** Values that GoTrue parses; it answers 500 to the code of a flow with another one. */
const flowMethods = ['oauth', 'password', 'otp', 'totp', 'recovery', 'invite', 'sso/saml', 'magiclink']
  .concat('email/signup', 'email_change', 'token_refresh', 'mfa/sms', 'mfa/webauthn', 'web3', 'passkey')
  .concat('oauth_provider/authorization_code');
/** GoTrue copies them into access tokens. */
const sessionMethods = [...flowMethods, 'anonymous', 'mfa/phone', 'mfa/recovery_code'];
/** GoTrue names those of other issuers by their URL. */
const identityProviders = ['email', 'phone', 'web3', ...providerNames]
  .concat(`sso:${uuid}`, 'custom:[a-z0-9:-]*[a-z0-9]', 'https?://[^[:space:]]+')
  .join('|');

/** Conditions beyond the types, the constraints and the enums of the schema. */
function formConditions(storage: HashStorage): ColumnConditions {
  const matches = (column: string, form: string): string => `${column} ~ '^(${form})$'`;
  const optional = (column: string, form: string): string => matches(column, `(${form})?`);
  const isOneOf = (column: string, values: readonly string[]): string => `${column} = any('{${values}}')`;
  /** Contacts of deleted users are digests. */
  const contact = (column: string, form: string): string =>
    `case when deleted_at is null then ${matches(column, form)} else ${optional(column, digest)} end`;
  const tokenHash = tokenHashes[storage];
  // SECURITY_TOKEN_DIGESTS, which a shared database forbids.
  const stored = (token: string): string => (storage === 'shared' ? token : `${token}|sha256:${digest}`);
  const refreshToken = stored('[a-z0-9]{12}');
  const member = (json: string, path: string, form: string): string =>
    `coalesce(${matches(`${json} #>> '{${path}}'`, form)}, false)`;
  const hasChallenge = (column: string): string => member(column, 'challenge', '[A-Za-z0-9_-]{22,}');
  return {
    users: {
      email: contact('email', email),
      phone: contact('phone', phone),
      email_change: contact('email_change', `(${email})?`),
      phone_change: contact('phone_change', `(${phone})?`),
      encrypted_password: optional('encrypted_password', passwordHash),
      confirmation_token: optional('confirmation_token', tokenHash),
      recovery_token: optional('recovery_token', tokenHash),
      email_change_token_new: optional('email_change_token_new', tokenHash),
      email_change_token_current: optional('email_change_token_current', tokenHash),
      phone_change_token: optional('phone_change_token', tokenHash),
      reauthentication_token: optional('reauthentication_token', tokenHash),
    },
    identities: {
      provider: matches('provider', identityProviders),
      // GoTrue finds two of them by the id of the user. Identities of deleted users are digests.
      provider_id: `identity_data = '{}' or coalesce(identity_data ->> 'sub' = provider_id
        and (provider not in ('email', 'phone') or provider_id = user_id::text), false)`,
    },
    one_time_tokens: {
      token_hash: matches('token_hash', tokenHash),
      relates_to: matches('relates_to', `${email}|${phone}`),
    },
    refresh_tokens: {
      token: matches('token', refreshToken),
      parent: optional('parent', refreshToken),
      user_id: matches('user_id', uuid),
    },
    sessions: {
      refresh_token_hmac_key: matches('refresh_token_hmac_key', `[A-Za-z0-9_-]{43}|${encrypted}`),
      refresh_token_counter: 'refresh_token_counter >= 0',
    },
    oauth_clients: {
      // GoTrue reads it into a text that cannot be null.
      client_secret_hash: `coalesce(${optional('client_secret_hash', digest)}, false)`,
      grant_types: matches('grant_types', `${grant}(,${grant})*`),
    },
    oauth_authorizations: {
      authorization_id: matches('authorization_id', '[A-Za-z0-9_-]{32}'),
      // A spent code is not found by GoTrue, which deletes such rows.
      authorization_code: `authorization_code is null or (status = 'expired' and authorization_code like 'spent:%')
        or ${matches('authorization_code', stored(uuid))}`,
      code_challenge: matches('code_challenge', '[A-Za-z0-9._~-]{43,128}'),
    },
    mfa_amr_claims: { authentication_method: isOneOf('authentication_method', sessionMethods) },
    mfa_factors: {
      secret: `case factor_type::text when 'totp' then ${matches('secret', `[A-Z2-7]+=*|${encrypted}`)} else secret = '' end`,
      phone: `case when phone is null then factor_type::text <> 'phone' else ${matches('phone', phone)} end`,
      web_authn_credential: `(web_authn_credential is null and (factor_type::text <> 'webauthn' or status = 'unverified')) or (
        ${member('web_authn_credential', 'id', base64)} and ${member('web_authn_credential', 'publicKey', base64)}
        and ${member('web_authn_credential', 'authenticator,signCount', '[0-9]+')}
        and ${member('web_authn_credential', 'authenticator,AAGUID', base64)})`,
    },
    mfa_challenges: {
      otp_code: optional('otp_code', storage === 'own' ? '[0-9a-f]{56}' : `[0-9]{4,10}|${encrypted}`),
      web_authn_session_data: `web_authn_session_data is null or ${hasChallenge('web_authn_session_data')}`,
    },
    webauthn_credentials: {
      transports: `jsonb_typeof(transports) = 'array' and not jsonb_path_exists(transports, '$[*] ? (@.type() <> "string")')`,
      attestation_type: matches('attestation_type', '[a-z0-9-]*'),
      sign_count: 'sign_count between 0 and 4294967295',
    },
    webauthn_challenges: { session_data: hasChallenge('session_data') },
    flow_state: {
      authentication_method: isOneOf('authentication_method', flowMethods),
      auth_code: matches('auth_code', stored(uuid)),
      code_challenge: optional('code_challenge', '[A-Za-z0-9._~-]{43,128}'),
      provider_type: matches('provider_type', `magiclink|invite|recovery|session|${identityProviders}`),
    },
    oauth_client_states: { code_verifier: matches('code_verifier', '[A-Za-z0-9._~-]{43,128}') },
    audit_log_entries: { payload: `coalesce(payload ->> 'action', '') <> ''` },
  };
}

/** Condition of the rows of a column. */
export interface ColumnCondition {
  /** Whether the condition is that the column is not null, or about its value. */
  readonly kind: 'required' | 'value';
  readonly condition: string;
}

const required = new Set(
  Object.entries(neverNull.columns).flatMap(([table, columns]) =>
    columns.map((column) => `${table}.${column}`),
  ),
);

/** The conditions of a column, such as `users.email`, with this SQL type. */
export function conditionsOf(name: string, type: string, storage: HashStorage): readonly ColumnCondition[] {
  const [table = '', column = ''] = name.split('.');
  const [, ofType] = Object.entries(typeConditions).find(([prefix]) => type.startsWith(prefix)) ?? [];
  const form = formConditions(storage)[table]?.[column];
  return [
    ...(required.has(name) ? [{ kind: 'required', condition: `${column} is not null` } as const] : []),
    ...(ofType && !jsonArrays.includes(name) ? [{ kind: 'value', condition: ofType(column) } as const] : []),
    ...(form === undefined ? [] : [{ kind: 'value', condition: form } as const]),
  ];
}
