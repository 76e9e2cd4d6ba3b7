import type { JsonObject } from '@tollgate/kit/json';
import { type TObject, Type } from 'typebox';
import { type AuthorizationDetail, maxDetails } from './oauth-permissions.ts';

/** Hooks by the name in their settings, with what each sends in addition to `metadata`. */
export interface HookPayloads {
  readonly CUSTOM_ACCESS_TOKEN: {
    readonly user_id: string;
    readonly claims: JsonObject;
    /** Claim `amr` of this sign-in, or `token_refresh`. */
    readonly authentication_method: string;
  };
  readonly SEND_EMAIL: { readonly user: JsonObject; readonly email_data: JsonObject };
  readonly SEND_SMS: { readonly user: JsonObject; readonly sms: JsonObject };
  readonly PASSWORD_VERIFICATION_ATTEMPT: { readonly user_id: string; readonly valid: boolean };
  readonly MFA_VERIFICATION_ATTEMPT: {
    readonly user_id: string;
    readonly factor_id: string;
    readonly factor_type: string;
    readonly valid: boolean;
  };
  readonly BEFORE_USER_CREATED: { readonly user: JsonObject };
  readonly AFTER_USER_CREATED: { readonly user: JsonObject };
  readonly BEFORE_ORGANIZATION_CREATED: {
    readonly organization: JsonObject;
    /** Who creates it. Absent for an administrator. */
    readonly user?: JsonObject;
  };
  readonly BEFORE_MEMBER_ADDED: {
    readonly organization: JsonObject;
    readonly user: JsonObject;
    readonly role: string;
    /** How the user joins: `invitation`, `domain` or `administrator`. */
    readonly method: string;
  };
  readonly AUTHORIZATION_DETAILS: {
    readonly authorization_details: readonly AuthorizationDetail[];
    readonly client: JsonObject;
    readonly grant_type: string;
    /** Separated by spaces. */
    readonly scope: string;
    readonly resource: string | null;
  };
}

export type HookName = keyof HookPayloads;

/** Members of replies, of which each hook uses some. */
export interface HookReply {
  readonly claims?: JsonObject;
  readonly decision?: string;
  readonly message?: string;
  readonly should_logout_user?: boolean | string;
  readonly authorization_details?: readonly AuthorizationDetail[];
  readonly lines?: readonly (string | Readonly<Record<string, string>>)[];
  readonly remember?: boolean;
}

interface HookDefinition {
  /** `metadata.name` of the payload. */
  readonly event: string;
  readonly reply: TObject;
}

const anyReply = Type.Object({});

const decision = Type.Object({
  // Any other decision is an error: a misspelled `reject` must not let a request pass.
  decision: Type.Optional(Type.Union([Type.Literal(''), Type.Literal('continue'), Type.Literal('reject')])),
  message: Type.Optional(Type.String()),
  should_logout_user: Type.Optional(
    Type.Union([Type.Boolean(), Type.Literal('true'), Type.Literal('false')]),
  ),
});

/** Claims that other parts of the system and clients depend on. */
const claims = Type.Object({
  iss: Type.Optional(Type.String()),
  aud: Type.Union([Type.String(), Type.Array(Type.String())]),
  exp: Type.Integer(),
  iat: Type.Integer(),
  sub: Type.String(),
  email: Type.String(),
  phone: Type.String(),
  role: Type.String(),
  aal: Type.String(),
  session_id: Type.String(),
  is_anonymous: Type.Boolean(),
  app_metadata: Type.Optional(Type.Object({})),
  user_metadata: Type.Optional(Type.Object({})),
  amr: Type.Optional(Type.Array(Type.Unknown())),
});

/** The page shows lines, and the size of the details is checked, too. */
const line = Type.String({ minLength: 1, maxLength: 255 });
const details = Type.Object({
  authorization_details: Type.Optional(
    Type.Array(Type.Object({ type: Type.String() }), { minItems: 1, maxItems: maxDetails }),
  ),
  lines: Type.Optional(
    Type.Array(Type.Union([line, Type.Record(Type.String(), line, { minProperties: 1 })]), { maxItems: 20 }),
  ),
  remember: Type.Optional(Type.Boolean()),
});

export const hookDefinitions: Readonly<Record<HookName, HookDefinition>> = {
  CUSTOM_ACCESS_TOKEN: { event: 'customize-access-token', reply: Type.Object({ claims }) },
  SEND_EMAIL: { event: 'send-email', reply: anyReply },
  SEND_SMS: { event: 'send-sms', reply: anyReply },
  PASSWORD_VERIFICATION_ATTEMPT: { event: 'password-verification', reply: decision },
  MFA_VERIFICATION_ATTEMPT: { event: 'mfa-verification', reply: decision },
  BEFORE_USER_CREATED: { event: 'before-user-created', reply: decision },
  AFTER_USER_CREATED: { event: 'after-user-created', reply: anyReply },
  BEFORE_ORGANIZATION_CREATED: { event: 'before-organization-created', reply: decision },
  BEFORE_MEMBER_ADDED: { event: 'before-member-added', reply: decision },
  AUTHORIZATION_DETAILS: { event: 'authorization-details', reply: details },
};

export const hookNames = Object.keys(hookDefinitions) as readonly HookName[]; // of the constant above

/** Where a hook is served. */
export type HookEndpoint =
  | { readonly kind: 'http'; readonly url: string; readonly secrets: readonly Buffer[] }
  /** `call` is the qualified and quoted name of a function. */
  | { readonly kind: 'postgres'; readonly call: string };

type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly expected: string };

/** Hosts that stay on the machine, where TLS is not required. */
const localHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]', 'host.docker.internal'];

const identifier = '[a-zA-Z_][a-zA-Z0-9_]{0,62}';
const functionUri = new RegExp(`^pg-functions://[^/]*/(${identifier})/(${identifier})$`);

const uriForm =
  'https://…, http://… of this machine, or pg-functions://postgres/<schema>/<function>, without user and password';

/** Parses the URI of a hook. Only HTTP endpoints use `secrets`. */
export function parseEndpoint(uri: string, secrets: readonly Buffer[]): Parsed<HookEndpoint> {
  const [, schema, name] = functionUri.exec(uri) ?? [];
  if (schema !== undefined && name !== undefined)
    return {
      ok: true,
      value: { kind: 'postgres', call: `"${schema}"."${name}"` },
    };
  const url = URL.parse(uri);
  if (url === null || url.username !== '' || url.password !== '') return { ok: false, expected: uriForm };
  const isAllowed =
    url.protocol === 'https:' || (url.protocol === 'http:' && localHosts.includes(url.hostname));
  if (!isAllowed) return { ok: false, expected: uriForm };
  return { ok: true, value: { kind: 'http', url: url.href, secrets } };
}

const secretForm =
  'one or more secrets v1,whsec_<base64> of 24 to 64 bytes, separated by |, for example v1,whsec_ and the output of openssl rand -base64 32';

/**
 * Parses secrets in the format of Standard Webhooks. Payloads are signed with each, so that a
 * secret can be replaced without downtime.
 *
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function parseSecrets(text: string): Parsed<readonly Buffer[]> {
  const secrets = text.split('|').map((secret) => {
    const [, encoded] = /^v1,whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret.trim()) ?? [];
    return Buffer.from(encoded ?? '', 'base64');
  });
  return secrets.every(({ length }) => length >= 24 && length <= 64)
    ? { ok: true, value: secrets }
    : { ok: false, expected: secretForm };
}
