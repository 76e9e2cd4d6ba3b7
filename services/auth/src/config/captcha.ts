import { bool, type SettingsCheck, text } from '@tollgate/kit/settings';
import { lifetime, svc } from './builders.ts';

const group = 'CAPTCHA';

/** The verification endpoint of each provider. */
export const captchaUrls: ReadonlyMap<string, string> = new Map([
  ['hcaptcha', 'https://hcaptcha.com/siteverify'],
  ['turnstile', 'https://challenges.cloudflare.com/turnstile/v0/siteverify'],
]);

export const captchaSettings = {
  captchaEnabled: bool({
    ...svc('SECURITY_CAPTCHA_ENABLED'),
    group,
    default: false,
    doc: 'Require a CAPTCHA token for sign-up, sign-in with a password or passkey, /otp, /magiclink, /recover and /resend. Administrators are exempt.',
  }),
  captchaProvider: text({
    ...svc('SECURITY_CAPTCHA_PROVIDER'),
    group,
    default: 'hcaptcha',
    doc: '`hcaptcha` or `turnstile`.',
  }),
  captchaSecret: text({
    ...svc('SECURITY_CAPTCHA_SECRET'),
    group,
    default: '',
    secret: true,
    doc: 'Secret key of the provider.',
  }),
  captchaTimeoutMs: lifetime({
    ...svc('SECURITY_CAPTCHA_TIMEOUT'),
    group,
    default: '10s',
    doc: 'Timeout of requests to the provider. Requests fail if it does not answer in time.',
  }),
  captchaUrl: text({
    ...svc('SECURITY_CAPTCHA_URL'),
    group,
    default: '',
    matches: {
      pattern: /^$|^https?:\/\/[^/?#@\s]+[^?#\s]*$/,
      form: 'an absolute URL with http or https',
    },
    doc: 'Verification endpoint. Empty: that of the provider.',
  }),
};

type Check = SettingsCheck<typeof captchaSettings>;

const knownProvider: Check = (s, { problem }) =>
  !s.captchaEnabled || captchaUrls.has(s.captchaProvider)
    ? undefined
    : problem('captchaProvider', `one of ${[...captchaUrls.keys()].join(', ')}`);

const givenSecret: Check = (s, { problem, variableName }) =>
  !s.captchaEnabled || s.captchaSecret !== ''
    ? undefined
    : problem('captchaSecret', `the secret key, because ${variableName('captchaEnabled')} is true`);

/** Without them, all requests would be rejected. */
export const captchaChecks: readonly Check[] = [knownProvider, givenSecret];
