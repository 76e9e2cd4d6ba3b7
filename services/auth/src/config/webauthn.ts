import { bool, int, list, oneOf, type Setting, type SettingsCheck, text } from '@tollgate/kit/settings';
import { lifetime, svc } from './builders.ts';
import type { mfaSettings } from './mfa.ts';
import type { Settings } from './settings.ts';

const group = 'Passkeys and WebAuthn';

/**
 * A domain without scheme, port and path.
 *
 * @see https://www.w3.org/TR/webauthn-3/#rp-id
 */
const domain = /^$|^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const rpOrigins = list({
  ...svc('WEBAUTHN_RP_ORIGINS'),
  group,
  default: [],
  doc: 'Origins of the pages and apps that may use WebAuthn, separated by commas.',
});

export const webAuthnSettings = {
  passkeyEnabled: bool({
    ...svc('PASSKEY_ENABLED'),
    group,
    default: false,
    doc: 'Enable registration of passkeys and sign-in with them.',
  }),
  passkeyMaxPerUser: int({
    ...svc('PASSKEY_MAX_PASSKEYS_PER_USER'),
    group,
    default: 10,
    min: 0,
    max: 100,
    doc: 'Maximum number of passkeys of a user.',
  }),
  passkeyUserVerification: oneOf(['required', 'preferred'], {
    ...svc('PASSKEY_USER_VERIFICATION'),
    group,
    default: 'required',
    doc: '`required`: a passkey is accepted only after a PIN or biometrics. `preferred`, as in GoTrue: also security keys without a PIN, with which any finder can sign in.',
  }),
  webAuthnRpId: text({
    env: 'SVC_WEBAUTHN_RP_ID',
    aliases: ['GOTRUE_WEBAUTHN_RP_ID', 'RP_ID'],
    group,
    default: '',
    matches: { pattern: domain, form: 'a domain such as example.com, without scheme, port and path' },
    doc: 'Domain that credentials belong to, shared by its subdomains. A change makes all credentials unusable.',
  }),
  webAuthnRpDisplayName: text({
    ...svc('WEBAUTHN_RP_DISPLAY_NAME'),
    group,
    default: '',
    doc: 'Name of the application in prompts of browsers.',
  }),
  webAuthnRpOrigins: Object.freeze({
    ...rpOrigins,
    form: 'origins such as https://example.com, http://localhost:3000 or android:apk-key-hash:…, separated by commas',
    parse: (value) => {
      const origins = rpOrigins.parse(value)?.map((origin) => origin.replace(/\/$/, ''));
      return origins?.every(isOrigin) ? origins : undefined;
    },
  }) satisfies Setting<readonly string[]>,
  webAuthnChallengeExpiryMs: lifetime({
    ...svc('WEBAUTHN_CHALLENGE_EXPIRY_DURATION'),
    group,
    default: '5m',
    min: '1s',
    doc: 'Lifetime of a challenge of a passkey. `MFA_CHALLENGE_EXPIRY_DURATION` applies to second factors.',
  }),
};

/** Browsers have WebAuthn only in secure contexts. Android apps and extensions have own forms. */
function isOrigin(text: string): boolean {
  if (/^(?:android:apk-key-hash:[\w-]{43}=?|chrome-extension:\/\/[a-p]{32})$/.test(text)) return true;
  if (!URL.canParse(text)) return false;
  const { origin, protocol, hostname } = new URL(text);
  if (origin !== text || !domain.test(hostname)) return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost');
}

type Check = SettingsCheck<typeof webAuthnSettings & typeof mfaSettings>;

/** Without these, no ceremony could succeed. */
const relyingParty = {
  webAuthnRpId: 'the domain of the application',
  webAuthnRpDisplayName: 'the name of the application',
  webAuthnRpOrigins: 'the origins of the application',
} as const;

export const webAuthnChecks = Object.entries(relyingParty).map(
  ([name, expected]): Check =>
    (s, { problem, variableName }) => {
      // The keys of a constant.
      const key = name as keyof typeof relyingParty;
      if (!s.passkeyEnabled || s[key].length > 0) return undefined;
      return problem(key, `${expected}, because ${variableName('passkeyEnabled')} is true`);
    },
);

/** Empty variables of the relying party. GoTrue starts without them if passkeys are off. */
export function missingRelyingParty(settings: Pick<Settings, keyof typeof relyingParty>): readonly string[] {
  return (Object.keys(relyingParty) as (keyof typeof relyingParty)[]) // of the constant above
    .filter((key) => settings[key].length === 0)
    .map((key) => webAuthnSettings[key].env);
}
