import { bool, type Setting } from '@tollgate/kit/settings';
import { notServed, notServedText } from './not-served.ts';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

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
