import { bool, type Setting, type SettingSchema, text } from '@tollgate/kit/settings';
import { svc, withoutEffect } from './builders.ts';

/** A setting of GoTrue that switches on what does not exist here. */
export type NotServed<T> = Setting<T> & { readonly isServed: false };

const switchedOff: SettingSchema = { type: 'boolean', enum: [false] };

interface NotServedOptions {
  readonly group: string;
  /** What it would switch on, as a noun phrase. */
  readonly feature: string;
}

/**
 * A switch that can only be off. `true` stops the start: ignoring it would leave out a protection
 * that the operator relies on.
 */
function notServed(name: string, { group, feature }: NotServedOptions): NotServed<boolean> {
  const base = bool({ ...svc(name), group, default: false, doc: `Not served yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `false: ${feature} is not served yet`,
    schema: switchedOff,
    parse: (value) => (base.parse(value) === false ? false : undefined),
    isServed: false,
  });
}

/** A restriction that can only be absent, for the same reason. */
function notServedText(name: string, { group, feature }: NotServedOptions): NotServed<string> {
  const base = text({ ...svc(name), group, default: '', doc: `Not served yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `nothing: ${feature} is not served yet`,
    parse: (value) => (value.trim() === '' ? '' : undefined),
    isServed: false,
  });
}

const group = 'Not served yet';

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

/** Switches of features that do not exist: each of them stops the start when it is on. */
export const unservedSettings = {
  captchaEnabled: notServed('SECURITY_CAPTCHA_ENABLED', { group, feature: 'CAPTCHA' }),
  samlEnabled: notServed('SAML_ENABLED', { group, feature: 'single sign-on by SAML' }),
  passkeyEnabled: notServed('PASSKEY_ENABLED', { group, feature: 'sign-in by passkey' }),
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
    feature: 'the extended validation of email addresses',
  }),
  emailAuthorizedAddresses: notServedText('EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES', {
    group,
    feature: 'a list of the addresses that mail may go to',
  }),
  ...hookSettings(),
  manualLinkingEnabled: withoutEffect(
    bool({
      ...svc('SECURITY_MANUAL_LINKING_ENABLED'),
      group: 'External providers',
      default: false,
      doc: 'Users may link and unlink identities.',
    }),
  ),
};

function hookSettings() {
  const settings = hooks.map((hook): [`hookEnabled:${Hook}`, Setting<boolean>] => [
    `hookEnabled:${hook}`,
    notServed(`HOOK_${hook}_ENABLED`, { group, feature: `the hook ${hook}` }),
  ]);
  // Object.fromEntries forgets the keys, which are made from the names as the type says.
  return Object.fromEntries(settings) as Record<`hookEnabled:${Hook}`, Setting<boolean>>;
}
