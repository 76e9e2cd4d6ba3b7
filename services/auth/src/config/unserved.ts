import { bool, type Setting, type SettingSchema, text } from '@tollgate/kit/settings';
import { svc, withoutEffect } from './builders.ts';

/** A setting of a GoTrue feature that is not supported. */
export type NotServed<T> = Setting<T> & { readonly isServed: false };

const switchedOff: SettingSchema = { type: 'boolean', enum: [false] };

interface NotServedOptions {
  readonly group: string;
  /** A noun phrase. */
  readonly feature: string;
}

/**
 * A switch that must be off. `true` is a startup error, because ignoring it could disable a
 * protection that operators rely on.
 */
function notServed(name: string, { group, feature }: NotServedOptions): NotServed<boolean> {
  const base = bool({ ...svc(name), group, default: false, doc: `Not supported yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `false: ${feature} is not supported yet`,
    schema: switchedOff,
    parse: (value) => (base.parse(value) === false ? false : undefined),
    isServed: false,
  });
}

/** A restriction that must be empty, for the same reason. */
function notServedText(name: string, { group, feature }: NotServedOptions): NotServed<string> {
  const base = text({ ...svc(name), group, default: '', doc: `Not supported yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `an empty value: ${feature} is not supported yet`,
    parse: (value) => (value.trim() === '' ? '' : undefined),
    isServed: false,
  });
}

const group = 'Not supported yet';

const hooks = [
  'MFA_VERIFICATION_ATTEMPT',
  'PASSWORD_VERIFICATION_ATTEMPT',
  'CUSTOM_ACCESS_TOKEN',
  'SEND_EMAIL',
  'SEND_SMS',
  'BEFORE_USER_CREATED',
  'AFTER_USER_CREATED',
] as const;
type Hook = (typeof hooks)[number];

/** Switches of unsupported features. Enabling one is a startup error. */
export const unservedSettings = {
  captchaEnabled: notServed('SECURITY_CAPTCHA_ENABLED', { group, feature: 'CAPTCHA' }),
  samlEnabled: notServed('SAML_ENABLED', { group, feature: 'SAML single sign-on' }),
  passkeyEnabled: notServed('PASSKEY_ENABLED', { group, feature: 'passkeys' }),
  oauthServerEnabled: notServed('OAUTH_SERVER_ENABLED', { group, feature: 'the OAuth 2.1 server' }),
  mfaPhoneEnrollEnabled: notServed('MFA_PHONE_ENROLL_ENABLED', { group, feature: 'MFA by phone' }),
  mfaPhoneVerifyEnabled: notServed('MFA_PHONE_VERIFY_ENABLED', { group, feature: 'MFA by phone' }),
  mfaWebAuthnEnrollEnabled: notServed('MFA_WEB_AUTHN_ENROLL_ENABLED', { group, feature: 'MFA by WebAuthn' }),
  mfaWebAuthnVerifyEnabled: notServed('MFA_WEB_AUTHN_VERIFY_ENABLED', { group, feature: 'MFA by WebAuthn' }),
  mfaRecoveryCodesEnrollEnabled: notServed('MFA_RECOVERY_CODES_ENROLL_ENABLED', {
    group,
    feature: 'MFA by recovery code',
  }),
  mfaRecoveryCodesVerifyEnabled: notServed('MFA_RECOVERY_CODES_VERIFY_ENABLED', {
    group,
    feature: 'MFA by recovery code',
  }),
  emailValidationExtended: notServed('MAILER_EMAIL_VALIDATION_EXTENDED', {
    group,
    feature: 'extended email validation',
  }),
  emailAuthorizedAddresses: notServedText('EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES', {
    group,
    feature: 'a list of allowed email recipients',
  }),
  ...hookSettings(),
  manualLinkingEnabled: withoutEffect(
    bool({
      ...svc('SECURITY_MANUAL_LINKING_ENABLED'),
      group: 'External providers',
      default: false,
      doc: 'Users can link and unlink identities.',
    }),
  ),
};

function hookSettings() {
  const settings = hooks.map((hook): [`hookEnabled:${Hook}`, Setting<boolean>] => [
    `hookEnabled:${hook}`,
    notServed(`HOOK_${hook}_ENABLED`, { group, feature: `the hook ${hook}` }),
  ]);
  // Object.fromEntries loses the keys, which match the type.
  return Object.fromEntries(settings) as Record<`hookEnabled:${Hook}`, Setting<boolean>>;
}
