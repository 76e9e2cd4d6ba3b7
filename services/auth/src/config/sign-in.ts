import { bool, float, int, list, type Setting, text } from '@tollgate/kit/settings';
import type { Millis } from '@tollgate/kit/time';
import { type CustomProvider, parseCustomProviders } from '../identity-providers/custom.ts';
import { type ProviderName, providerNames } from '../identity-providers/registry.ts';
import { type ChainName, chains } from '../wallets/chain.ts';
import { hostList, lifetime, quota, seconds, svc, textOrDefault, withoutEffect } from './builders.ts';

const group = 'Passwords';

export const passwordSettings = {
  passwordMinLength: int({
    ...svc('PASSWORD_MIN_LENGTH'),
    group,
    default: 6,
    min: 0,
    max: 72,
    doc: 'Minimum number of characters, at least 6.',
  }),
  passwordMaxBytes: int({
    ...svc('PASSWORD_MAX_BYTES'),
    group,
    default: 72,
    min: 72,
    max: 1024,
    doc: 'Maximum length in bytes of UTF-8: a character has up to four. bcrypt ignores bytes after 72, and hashes passwords with SVC_DB_SHARED_WITH_GOTRUE.',
  }),
  passwordRejectContext: bool({
    ...svc('PASSWORD_REJECT_CONTEXT'),
    group,
    default: false,
    doc: 'Reject passwords that contain a word of the user or the site, in any case and with any punctuation: the part of the email before the @ and its words, the phone number, the longest label of the host of SVC_SITE_URL, SVC_PAGES_NAME, and SVC_PASSWORD_CONTEXT_WORDS. Words below four characters do not count.',
  }),
  passwordContextWords: list({
    ...svc('PASSWORD_CONTEXT_WORDS'),
    group,
    default: [],
    doc: 'With SVC_PASSWORD_REJECT_CONTEXT: more such words, of products and projects for example.',
  }),
  passwordRequiredCharacters: text({
    ...svc('PASSWORD_REQUIRED_CHARACTERS'),
    group,
    default: '',
    doc: 'Sets of characters separated by `:` (`\\:` is a colon). A password must have a character of each.',
  }),
  passwordHibpEnabled: bool({
    ...svc('PASSWORD_HIBP_ENABLED'),
    group,
    default: false,
    doc: 'Reject new passwords found in Pwned Passwords, and report a leaked one at sign-in. Only the first five hexadecimal digits of the SHA-1 of a password are sent.',
  }),
  passwordHibpFailClosed: bool({
    ...svc('PASSWORD_HIBP_FAIL_CLOSED'),
    group,
    default: false,
    doc: 'Reject new passwords while that service is unavailable. Otherwise they are accepted with a warning in the log.',
  }),
  passwordHibpUserAgent: textOrDefault({
    ...svc('PASSWORD_HIBP_USER_AGENT'),
    group,
    default: 'Tollgate',
    matches: { pattern: /^[\x20-\x7e]{1,256}$/, form: 'the value of a header: up to 256 visible characters' },
    doc: 'User-Agent of requests to Pwned Passwords.',
  }),
  passwordHibpUrl: text({
    ...svc('PASSWORD_HIBP_URL'),
    group,
    default: 'https://api.pwnedpasswords.com',
    matches: { pattern: /^https?:\/\/[^/?#@]+[^?#]*$/, form: 'an absolute URL with http or https' },
    doc: 'Base URL of the service, or of a mirror.',
  }),
  updatePasswordRequireReauthentication: bool({
    ...svc('SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION'),
    group,
    default: false,
    doc: 'A password change requires a nonce of `/reauthenticate` if the session is older than a day.',
  }),
  updatePasswordRequireCurrentPassword: bool({
    ...svc('SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD'),
    group,
    default: false,
    doc: 'A password change requires the old password, unless there is none or the user signed in by a link or a code, as for a password reset.',
  }),
  recentSignInMs: seconds({
    ...svc('SECURITY_RECENT_SIGN_IN'),
    group,
    default: '0s',
    min: '0s',
    doc: 'Changes of email, phone, password, factors, passkeys and identities, and ending other sessions, require a sign-in as recent as this, or the current password or a nonce of `/reauthenticate`. A password reset counts as recent for the password for a day. 0 means no requirement; otherwise this replaces the nonce of `SVC_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION`.',
  }),
  uniformAnswers: bool({
    ...svc('SECURITY_UNIFORM_ANSWERS'),
    group,
    default: false,
    doc: 'Prevent user enumeration: responses of sign-up, /otp, /magiclink, /recover and /resend, including limits, are the same for known and unknown users, and emails are sent after the response. Requires that contacts are confirmed.',
  }),
};

const limitGroup = 'Rate limits';

function perAddress(name: string, events: number, doc: string) {
  return float({
    ...svc(name),
    group: limitGroup,
    default: events,
    min: 0,
    doc: `Requests per client address (IPv6: /64) and ${doc}.`,
  });
}

function wrongGuesses(name: string, guesses: number, doc: string) {
  return int({ ...svc(name), group: limitGroup, default: guesses, min: 1, max: 1_000_000, doc });
}

export const limitSettings = {
  rateLimitHeader: text({
    ...svc('RATE_LIMIT_HEADER'),
    group: limitGroup,
    default: '',
    doc: 'Header whose first item is used instead of the client address. Use behind trusted proxies only.',
  }),
  rateLimitEmailSent: quota({
    ...svc('RATE_LIMIT_EMAIL_SENT'),
    group: limitGroup,
    default: '30',
    doc: 'Emails to all users together.',
  }),
  rateLimitSmsSent: quota({
    ...svc('RATE_LIMIT_SMS_SENT'),
    group: limitGroup,
    default: '30',
    doc: 'Text messages to all users together.',
  }),
  rateLimitUnknownClients: int({
    ...svc('RATE_LIMIT_UNKNOWN_CLIENTS'),
    group: limitGroup,
    default: 20,
    min: 0,
    max: 1_000_000,
    doc: 'Where client addresses are unknown (a proxy that no setting trusts, private addresses), all clients of an instance share the limits per client address, multiplied by this number. Of `/token` only wrong refresh tokens count, once. 0: no limit.',
  }),
  rateLimitUnknownSignUps: int({
    ...svc('RATE_LIMIT_UNKNOWN_SIGN_UPS'),
    group: limitGroup,
    default: 50,
    min: 0,
    max: 1_000_000,
    doc: 'Accounts that all clients of an instance together may create in 5 minutes where client addresses are unknown. /signup counts whether or not it creates one; sign-ins do not count. 0: no limit.',
  }),
  rateLimitSignUpsPerContact: int({
    ...svc('RATE_LIMIT_SIGN_UPS_PER_CONTACT'),
    group: limitGroup,
    default: 30,
    min: 1,
    max: 1_000_000,
    doc: 'Sign-ups with an email or phone in an hour, from all clients, whether or not there is a user.',
  }),
  rateLimitRefreshesPerSession: int({
    ...svc('RATE_LIMIT_REFRESHES_PER_SESSION'),
    group: limitGroup,
    default: 100,
    min: 1,
    max: 1_000_000,
    doc: 'Refreshes of a session in 5 minutes.',
  }),
  rateLimitOtp: perAddress(
    'RATE_LIMIT_OTP',
    30,
    '5 minutes: /signup, /magiclink, /otp, /recover, /resend, PUT /user',
  ),
  rateLimitVerify: perAddress('RATE_LIMIT_VERIFY', 30, '5 minutes: /verify'),
  rateLimitTokenRefresh: perAddress('RATE_LIMIT_TOKEN_REFRESH', 150, '5 minutes: /token'),
  rateLimitOauthToken: perAddress(
    'RATE_LIMIT_OAUTH_TOKEN',
    300,
    '5 minutes: /oauth/token, and as many to /oauth/authorize',
  ),
  rateLimitOauthRegister: perAddress(
    'RATE_LIMIT_OAUTH_DYNAMIC_CLIENT_REGISTER',
    10,
    '5 minutes: /oauth/clients/register',
  ),
  rateLimitOauthClient: int({
    ...svc('RATE_LIMIT_OAUTH_CLIENT'),
    group: limitGroup,
    default: 300,
    min: 1,
    max: 1_000_000,
    doc: 'Tokens that an OAuth client may get in 5 minutes, from all addresses. Requests that fail to authenticate do not count.',
  }),
  rateLimitSso: withoutEffect(perAddress('RATE_LIMIT_SSO', 30, '5 minutes: /sso')),
  rateLimitWeb3: perAddress('RATE_LIMIT_WEB3', 30, '5 minutes: sign-in with a wallet'),
  rateLimitAnonymousUsers: perAddress('RATE_LIMIT_ANONYMOUS_USERS', 30, 'hour: anonymous sign-up'),
  rateLimitPasskey: perAddress('RATE_LIMIT_PASSKEY', 30, '5 minutes: challenges for passkeys'),
  rateLimitFactorVerify: perAddress(
    'MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY',
    15,
    'minute: challenge and verify of factors',
  ),
  wrongPasswordsPerNetwork: wrongGuesses(
    'RATE_LIMIT_WRONG_PASSWORDS',
    10,
    'Wrong passwords for an account from one network (/24 or /64) in 10 minutes. Each further attempt must wait, from 1 minute up to an hour.',
  ),
  wrongPasswordsPerAccount: wrongGuesses(
    'RATE_LIMIT_WRONG_PASSWORDS_PER_ACCOUNT',
    100,
    'Wrong passwords for an account in an hour. Networks with a sign-in to the account in the last 90 days are exempt.',
  ),
  wrongCodesPerNetwork: wrongGuesses(
    'RATE_LIMIT_WRONG_CODES',
    10,
    'As `RATE_LIMIT_WRONG_PASSWORDS`, for codes in emails and text messages.',
  ),
  wrongCodesPerAccount: wrongGuesses(
    'RATE_LIMIT_WRONG_CODES_PER_ACCOUNT',
    100,
    'As `RATE_LIMIT_WRONG_PASSWORDS_PER_ACCOUNT`, for codes. Links in emails are exempt.',
  ),
  wrongFactorsPerNetwork: wrongGuesses(
    'RATE_LIMIT_WRONG_FACTORS',
    10,
    'As `RATE_LIMIT_WRONG_PASSWORDS`, for second factors of a user.',
  ),
  wrongFactorsPerDay: wrongGuesses(
    'RATE_LIMIT_WRONG_FACTORS_PER_DAY',
    50,
    'Wrong second factors of a user in a day. The user gets an email, and can still sign in from networks in which a second factor was verified in the last 90 days.',
  ),
  wrongCodesPerMessage: wrongGuesses(
    'RATE_LIMIT_WRONG_CODES_PER_MESSAGE',
    30,
    'Wrong attempts after which a code is no longer accepted, except from networks with a sign-in to the account.',
  ),
};

/** Credentials are sent there: plain http is for this machine only. */
const urlOrEmpty = {
  pattern:
    /^$|^https:\/\/[^/?#@\s]+[^?#\s]*$|^http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?(?:\/[^?#\s]*)?$/,
  form: 'an absolute URL with https, or http of this machine',
};

const providerGroup = 'External providers';

type ProviderSettings = {
  readonly [P in ProviderName as `external${'Enabled' | 'EmailOptional' | 'SkipNonceCheck'}:${P}`]: Setting<boolean>;
} & {
  readonly [P in ProviderName as `externalClientId:${P}`]: Setting<readonly string[]>;
} & {
  readonly [P in ProviderName as `external${'Secret' | 'RedirectUri' | 'Url'}:${P}`]: Setting<string>;
};

/** Settings of each external provider: `settings['externalClientId:github']`. */
// Object.fromEntries loses the keys, which match the type.
export const providerSettings = Object.fromEntries<
  Setting<string> | Setting<boolean> | Setting<readonly string[]>
>(
  providerNames.flatMap((name) => {
    const named = (part: string) => ({
      ...svc(`EXTERNAL_${name.toUpperCase()}_${part}`),
      group: providerGroup,
    });
    return [
      [
        `externalEnabled:${name}`,
        bool({ ...named('ENABLED'), default: false, doc: 'Enable sign-in with the provider.' }),
      ],
      [
        `externalClientId:${name}`,
        list({
          ...named('CLIENT_ID'),
          default: [],
          doc: 'Client id. Of several, separated by commas, the first is used to sign in.',
        }),
      ],
      [
        `externalSecret:${name}`,
        text({ ...named('SECRET'), default: '', secret: true, doc: 'Client secret.' }),
      ],
      [
        `externalRedirectUri:${name}`,
        text({
          ...named('REDIRECT_URI'),
          default: '',
          matches: {
            pattern: /^$|^https?:\/\/[^/?#@\s]+[^#\s]*$/,
            form: 'an absolute URL with http or https',
          },
          doc: 'URL of `/callback` as registered with the provider. Empty: `API_EXTERNAL_URL` with `/callback`.',
        }),
      ],
      [
        `externalUrl:${name}`,
        text({
          ...named('URL'),
          default: '',
          matches: urlOrEmpty,
          doc: 'Base URL of the provider, if not its own.',
        }),
      ],
      [
        `externalEmailOptional:${name}`,
        bool({
          ...named('EMAIL_OPTIONAL'),
          default: false,
          doc: 'Users without an email address may sign in.',
        }),
      ],
      [
        `externalSkipNonceCheck:${name}`,
        bool({
          ...named('SKIP_NONCE_CHECK'),
          default: false,
          doc: 'Accept ID tokens at `/token` whatever their nonce is. Anyone who gets hold of one can sign in with it.',
        }),
      ],
    ] as const;
  }),
) as ProviderSettings;

type Web3Settings = {
  readonly [C in ChainName as `web3Enabled:${C}`]: Setting<boolean>;
} & { readonly [C in ChainName as `web3MaxValidityMs:${C}`]: Setting<Millis> };

/** Settings of each chain: `settings['web3Enabled:ethereum']`. */
// Object.fromEntries loses the keys, which match the type.
export const web3Settings = Object.fromEntries<Setting<boolean> | Setting<Millis>>(
  Object.entries(chains).flatMap(([name, { title }]) => {
    const named = (part: string) => ({
      ...svc(`EXTERNAL_WEB3_${name.toUpperCase()}_${part}`),
      group: providerGroup,
    });
    return [
      [
        `web3Enabled:${name}`,
        bool({ ...named('ENABLED'), default: false, doc: `Enable sign-in with ${title} wallets.` }),
      ],
      [
        `web3MaxValidityMs:${name}`,
        lifetime({
          ...named('MAXIMUM_VALIDITY_DURATION'),
          default: '10m',
          doc: 'Maximum time between `Issued At` of a signed message and the sign-in.',
        }),
      ],
    ] as const;
  }),
) as Web3Settings;

const customProviders = text({
  ...svc('EXTERNAL_CUSTOM_PROVIDERS'),
  group: providerGroup,
  default: '',
  secret: true,
  doc: 'Further providers as a JSON object by name, each used as `provider=custom:<name>`: `client_id`, `client_secret` and `issuer` (OpenID Connect) or `authorization_url`, `token_url` and `userinfo_url` (OAuth 2.0); optional `scopes`, `pkce_enabled`, `email_optional`, `skip_nonce_check`, `attribute_mapping`, `authorization_params`.',
});

export const customProviderSettings = {
  manualLinkingEnabled: bool({
    ...svc('SECURITY_MANUAL_LINKING_ENABLED'),
    group: providerGroup,
    default: false,
    doc: 'Users can link and unlink identities.',
  }),
  customOauthEnabled: bool({
    ...svc('CUSTOM_OAUTH_ENABLED'),
    group: providerGroup,
    default: true,
    doc: 'Providers that administrators add with `/admin/custom-providers`. `false`: none can be added, and users cannot sign in with them.',
  }),
  customOauthMaxProviders: int({
    ...svc('CUSTOM_OAUTH_MAX_PROVIDERS'),
    group: providerGroup,
    default: 0,
    min: 0,
    doc: 'Maximum number of providers that administrators can add. 0: no limit.',
  }),
  externalIosBundleId: text({
    ...svc('EXTERNAL_IOS_BUNDLE_ID'),
    group: providerGroup,
    default: '',
    doc: 'Bundle id of an iOS app, whose ID tokens of Apple are accepted, besides those for `EXTERNAL_APPLE_CLIENT_ID`.',
  }),
  allowedIdTokenIssuers: list({
    ...svc('EXTERNAL_ALLOWED_ID_TOKEN_ISSUERS'),
    group: providerGroup,
    default: [],
    doc: 'Issuers of OpenID Connect whose ID tokens are accepted at `/token` with the `issuer` and `client_id` of the request. Any app of the issuer can be that client: prefer `EXTERNAL_CUSTOM_PROVIDERS`.',
  }),
  createEmailIdentityOnPasswordSet: bool({
    ...svc('EXPERIMENTAL_CREATE_EMAIL_IDENTITY_ON_PASSWORD_SET_ENABLED'),
    group: providerGroup,
    default: false,
    doc: 'Add the email identity when a user with a confirmed email, who signed up with a provider, gets a password.',
  }),
  customOauthExternalUrl: textOrDefault({
    ...svc('CUSTOM_OAUTH_EXTERNAL_URL'),
    group: providerGroup,
    default: '',
    doc: 'Public URL of this server for the callbacks of these providers. Empty: API_EXTERNAL_URL.',
  }),
  customOauthPrivateHosts: hostList({
    ...svc('CUSTOM_OAUTH_PRIVATE_HOSTS'),
    group: providerGroup,
    default: [],
    doc: 'Hosts of these providers that may have a private address. Other ones must have public addresses.',
  }),
  externalCustomProviders: Object.freeze({
    ...customProviders,
    form: 'a JSON object of providers with client_id and https URLs',
    parse: parseCustomProviders,
    fallback: { value: [], text: '' },
  }) as Setting<readonly CustomProvider[]>,
};
