import { type TObject, Type } from 'typebox';
import type { JsonObject } from '../users/user.ts';

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
}

export type HookName = keyof HookPayloads;

/** Members of replies, of which each hook uses some. */
export interface HookReply {
  readonly claims?: JsonObject;
  readonly decision?: string;
  readonly message?: string;
  readonly should_logout_user?: boolean | string;
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

export const hookDefinitions: Readonly<Record<HookName, HookDefinition>> = {
  CUSTOM_ACCESS_TOKEN: { event: 'customize-access-token', reply: Type.Object({ claims }) },
  SEND_EMAIL: { event: 'send-email', reply: anyReply },
  SEND_SMS: { event: 'send-sms', reply: anyReply },
  PASSWORD_VERIFICATION_ATTEMPT: { event: 'password-verification', reply: decision },
  MFA_VERIFICATION_ATTEMPT: { event: 'mfa-verification', reply: decision },
  BEFORE_USER_CREATED: { event: 'before-user-created', reply: decision },
  AFTER_USER_CREATED: { event: 'after-user-created', reply: anyReply },
};

export const hookNames = Object.keys(hookDefinitions) as readonly HookName[]; // of the constant above
