import { bool, oneOf, type Setting, text } from '@tollgate/kit/settings';
import { seconds } from './builders.ts';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

/** CAPTCHA. */
export const captchaSettings = {
  captchaEnabled: withoutEffect(
    bool({
      ...svc('SECURITY_CAPTCHA_ENABLED'),
      group: 'CAPTCHA',
      default: false,
      doc: 'Verify `captcha_token`.',
    }),
  ),
  captchaProvider: withoutEffect(
    oneOf(['', 'hcaptcha', 'turnstile'], {
      ...svc('SECURITY_CAPTCHA_PROVIDER'),
      group: 'CAPTCHA',
      default: '',
      doc: 'Who verifies.',
    }),
  ),
  captchaSecret: withoutEffect(
    text({
      ...svc('SECURITY_CAPTCHA_SECRET'),
      group: 'CAPTCHA',
      default: '',
      secret: true,
      doc: 'Its secret.',
    }),
  ),
  captchaTimeoutMs: withoutEffect(
    seconds({
      ...svc('SECURITY_CAPTCHA_TIMEOUT'),
      group: 'CAPTCHA',
      default: '10s',
      doc: 'Longest wait for it.',
    }),
  ),
};

const hookNames = [
  'MFA_VERIFICATION_ATTEMPT',
  'PASSWORD_VERIFICATION_ATTEMPT',
  'CUSTOM_ACCESS_TOKEN',
  'SEND_EMAIL',
  'SEND_SMS',
  'BEFORE_USER_CREATED',
  'AFTER_USER_CREATED',
] as const;
type HookName = (typeof hookNames)[number];

type HookSettings = { readonly [H in HookName as `hookEnabled:${H}`]: Setting<boolean> } & {
  readonly [H in HookName as `hook${'Uri' | 'Secrets'}:${H}`]: Setting<string>;
};

/** Calls to others at certain moments: `settings['hookUri:SEND_SMS']`. */
// Object.fromEntries forgets which key has which value; the keys are made from the names as the type says.
export const hookSettings = Object.fromEntries<Setting<string> | Setting<boolean>>(
  hookNames.flatMap((name) => {
    const of = (part: string) => ({ ...svc(`HOOK_${name}_${part}`), group: 'Hooks' });
    return [
      [`hookEnabled:${name}`, withoutEffect(bool({ ...of('ENABLED'), default: false, doc: 'Call it.' }))],
      [`hookUri:${name}`, withoutEffect(text({ ...of('URI'), default: '', doc: 'Where it is.' }))],
      [
        `hookSecrets:${name}`,
        withoutEffect(text({ ...of('SECRETS'), default: '', secret: true, doc: 'Keys that sign the call.' })),
      ],
    ] as const;
  }),
) as HookSettings;

/** What else belongs to sign-in with others. */
export const linkingSettings = {
  manualLinkingEnabled: withoutEffect(
    bool({
      ...svc('SECURITY_MANUAL_LINKING_ENABLED'),
      group: 'External providers',
      default: false,
      doc: 'Users may link and unlink identities.',
    }),
  ),
};
