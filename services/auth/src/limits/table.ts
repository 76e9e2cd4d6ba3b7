import type { AppError } from '@tollgate/kit/errors';
import type { Millis } from '@tollgate/kit/time';
import type { Bucket, Quota } from '../config/quotas.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/**
 * The key of a limit: the client (an IPv4 address, an IPv6 network /64, or the value of
 * `RATE_LIMIT_HEADER`), the address of a client of the gateway, its network (/24, /64), an account
 * (a user, contact, session or factor), or nothing: all requests to an instance, or all events of
 * the installation.
 */
type LimitedBy = 'client' | 'address' | 'network' | 'account' | 'instance' | 'installation';

/** A limit of events. */
interface QuotaLimit {
  readonly by: LimitedBy;
  readonly counts: 'requests' | 'failures' | 'messages';
  readonly quota: (settings: Settings) => Quota;
  /**
   * For limits by client: the requests that count where clients cannot be distinguished, and share
   * a limit in each instance. Clients that are refused a refresh may sign their user out: only
   * failures count there.
   */
  readonly unknownClients?: 'requests' | 'failures';
}

/** A limit of one event for each key in a time that the caller names. */
interface SpacingLimit {
  readonly by: 'account';
  readonly counts: 'requests' | 'messages';
  readonly quota: 'one-per-spacing';
}

/** Wrong guesses of an account from one network, and the delay of further ones. */
export interface NetworkLimit {
  readonly guesses: number;
  /** Below the limit, the count is reset after this time without a wrong guess. */
  readonly forgetMs: Millis;
  /** From the limit on, it is kept for this time, so that a pause does not reset the delay. */
  readonly rememberMs: Millis;
  /** Delay of the next guess at the limit. It doubles with each further wrong guess. */
  readonly firstDelayMs: Millis;
  readonly maxDelayMs: Millis;
}

/** Wrong guesses of an account from networks that are unknown to it. */
export interface AccountLimit {
  readonly guesses: number;
  /** Time in which a full count drains. */
  readonly periodMs: Millis;
}

/** Limits of wrong guesses, by account and network, and by account for unknown networks. */
interface GuessLimit {
  readonly by: 'account';
  readonly counts: 'guesses';
  readonly quota?: undefined;
  readonly network: (settings: Settings) => NetworkLimit;
  readonly account: (settings: Settings) => AccountLimit;
  readonly error: () => AppError;
}

type Limit = QuotaLimit | SpacingLimit | GuessLimit;

/**
 * A bucket of `events` that refills completely within `periodMs`. Fewer than one event is one,
 * refilled more slowly.
 */
export function bucketQuota(events: number, periodMs: Millis): Bucket {
  const size = events > 0 ? Math.max(events, 1) : 0;
  return { kind: 'bucket', size, refillEveryMs: events > 0 ? periodMs / events : periodMs };
}

type NumericSetting = {
  [Name in keyof Settings]: Settings[Name] extends number ? Name : never;
}[keyof Settings];

/** The events that a setting allows in a period. */
function per<N extends NumericSetting>(periodMs: Millis, name: N): (settings: Pick<Settings, N>) => Bucket {
  return (settings) => bucketQuota(settings[name], periodMs);
}

function constant(events: number, periodMs: Millis): () => Bucket {
  const quota = bucketQuota(events, periodMs);
  return () => quota;
}

/** By network: ten minutes below the limit, then delays from a minute up to an hour, for a day. */
function delayed(name: NumericSetting): (settings: Settings) => NetworkLimit {
  return (settings) => ({
    guesses: settings[name],
    forgetMs: 10 * minuteMs,
    rememberMs: dayMs,
    firstDelayMs: minuteMs,
    maxDelayMs: hourMs,
  });
}

function perAccount(periodMs: Millis, name: NumericSetting): (settings: Settings) => AccountLimit {
  return (settings) => ({ guesses: settings[name], periodMs });
}

const byClient = { by: 'client', counts: 'requests', unknownClients: 'requests' } as const;
const spaced = { by: 'account', counts: 'messages', quota: 'one-per-spacing' } as const;
const guesses = { by: 'account', counts: 'guesses', error: errors.over_request_rate_limit } as const;

/**
 * Every limit of the service. The names are those of rows in the database, and of metrics; those of
 * guesses are `wrong_` and the kind.
 */
export const limits = {
  otp: { ...byClient, quota: per(5 * minuteMs, 'rateLimitOtp') },
  verify: { ...byClient, quota: per(5 * minuteMs, 'rateLimitVerify') },
  token: { ...byClient, unknownClients: 'failures', quota: per(5 * minuteMs, 'rateLimitTokenRefresh') },
  web3: { ...byClient, quota: per(5 * minuteMs, 'rateLimitWeb3') },
  anonymous: { ...byClient, quota: per(hourMs, 'rateLimitAnonymousUsers') },
  oauth_token: { ...byClient, quota: per(5 * minuteMs, 'rateLimitOauthToken') },
  oauth_register: { ...byClient, quota: per(5 * minuteMs, 'rateLimitOauthRegister') },
  oauth_authorize: {
    ...byClient,
    unknownClients: 'failures',
    quota: per(5 * minuteMs, 'rateLimitOauthToken'),
  },
  passkey: { ...byClient, quota: per(5 * minuteMs, 'rateLimitPasskey') },
  factor: { ...byClient, quota: per(minuteMs, 'rateLimitFactorVerify') },

  // Counted in the memory of each instance: ext_authz must not write for wrong keys.
  unknown_api_key: { by: 'address', counts: 'failures', quota: per(minuteMs, 'rateLimitApiKeys') },

  // Where clients are unknown, sign-ups have an own limit: a sign-up costs an attacker nothing.
  unknown_sign_up: {
    by: 'instance',
    counts: 'requests',
    quota: per(5 * minuteMs, 'rateLimitUnknownSignUps'),
  },
  // The key is the email or phone, whether or not there is a user.
  sign_up: { by: 'account', counts: 'requests', quota: per(hourMs, 'rateLimitSignUpsPerContact') },
  // The key is the session.
  refresh: { by: 'account', counts: 'requests', quota: per(5 * minuteMs, 'rateLimitRefreshesPerSession') },
  // The key is the OAuth client, which has authenticated.
  oauth_client: { by: 'account', counts: 'requests', quota: per(5 * minuteMs, 'rateLimitOauthClient') },
  // The key is the user who invites, or the address.
  organization_invitation: {
    by: 'account',
    counts: 'requests',
    quota: per(hourMs, 'rateLimitOrganizationInvitations'),
  },
  organization_invitation_address: { by: 'account', counts: 'requests', quota: constant(10, dayMs) },
  // The key is the organization. Each check asks DNS servers of others.
  organization_domain_check: { by: 'account', counts: 'requests', quota: constant(30, hourMs) },
  // By factor and network: the attempts of an attacker must not use up those of the owner.
  factor_attempt: { by: 'account', counts: 'requests', quota: per(minuteMs, 'rateLimitFactorVerify') },
  // A nonce has six digits and lasts up to a day, which is too short to be guessed at this rate.
  reauthentication_attempt: { by: 'account', counts: 'requests', quota: constant(10, 10 * minuteMs) },
  // More than the users of a network need; 0.01 % of all six-digit codes in ten minutes.
  guessable_link: { by: 'network', counts: 'failures', quota: constant(100, 10 * minuteMs) },

  // Documents of OAuth clients that a network makes the server fetch, from hosts of others.
  client_document: { by: 'network', counts: 'requests', quota: constant(30, 5 * minuteMs) },

  // Codes of devices that users type: 20^8 are possible.
  device_code: { by: 'network', counts: 'requests', quota: constant(20, 10 * minuteMs) },

  // The entries of the audit log for the failed sign-ins of a user, and their events.
  failed_sign_in_entry: { by: 'account', counts: 'failures', quota: constant(20, hourMs) },

  // The entries for requests that an API key lacks the scope for.
  denied_admin_entry: { by: 'account', counts: 'failures', quota: constant(20, hourMs) },

  wrong_password: {
    ...guesses,
    network: delayed('wrongPasswordsPerNetwork'),
    account: perAccount(hourMs, 'wrongPasswordsPerAccount'),
  },
  wrong_code: {
    ...guesses,
    network: delayed('wrongCodesPerNetwork'),
    account: perAccount(hourMs, 'wrongCodesPerAccount'),
  },
  wrong_factor: {
    ...guesses,
    network: delayed('wrongFactorsPerNetwork'),
    account: perAccount(dayMs, 'wrongFactorsPerDay'),
  },
  wrong_recovery_code: {
    ...guesses,
    error: errors.mfa_recovery_codes_locked,
    // A lockout of GoTrue: after it, the count starts again.
    network: ({ mfaRecoveryCodesMaxVerifyAttempts, mfaRecoveryCodesLockoutMs }) => ({
      guesses: mfaRecoveryCodesMaxVerifyAttempts,
      forgetMs: mfaRecoveryCodesLockoutMs,
      rememberMs: mfaRecoveryCodesLockoutMs,
      firstDelayMs: mfaRecoveryCodesLockoutMs,
      maxDelayMs: mfaRecoveryCodesLockoutMs,
    }),
    account: perAccount(dayMs, 'wrongFactorsPerDay'),
  },

  email_sent: { by: 'installation', counts: 'messages', quota: (settings) => settings.rateLimitEmailSent },
  sms_sent: { by: 'installation', counts: 'messages', quota: (settings) => settings.rateLimitSmsSent },
  // Messages that are only simulated must not use up the quota of real ones.
  email_sent_to_nobody: {
    by: 'installation',
    counts: 'messages',
    quota: (settings) => settings.rateLimitEmailSent,
  },
  sms_sent_to_nobody: {
    by: 'installation',
    counts: 'messages',
    quota: (settings) => settings.rateLimitSmsSent,
  },
  factor_locked_mail: { by: 'account', counts: 'messages', quota: constant(1, dayMs) },
  contact_confirmation: spaced,
  contact_sign_in: spaced,
  contact_change: spaced,
  factor_code: spaced,
  // An assertion of a client is accepted once.
  client_assertion: { by: 'account', counts: 'requests', quota: 'one-per-spacing' },
  // A message of a wallet is accepted once.
  web3_message: { by: 'account', counts: 'requests', quota: 'one-per-spacing' },
} as const satisfies Readonly<Record<string, Limit>>;

type Named<Row> = {
  [Name in keyof typeof limits]: (typeof limits)[Name] extends Row ? Name : never;
}[keyof typeof limits];

/** Limits of requests that a route names. */
export type ClientLimit = Named<{ readonly by: 'client' }>;
/** Limits by a key that the caller names. */
export type EventLimit = Exclude<Named<QuotaLimit>, ClientLimit | 'unknown_sign_up' | 'unknown_api_key'>;
export type SpacedEvent = Named<SpacingLimit>;
export type GuessKind = Named<GuessLimit> extends `wrong_${infer Kind}` ? Kind : never;

export const guessKinds = Object.keys(limits)
  .map((name) => /^wrong_(.*)$/.exec(name)?.[1])
  .filter((kind) => kind !== undefined);

/** Labels of the metric of refused requests. Limits of messages and guesses have their own. */
export const refusals = Object.entries<Limit>(limits)
  .filter(
    ([, { by, counts, quota }]) => typeof quota === 'function' && (counts === 'requests' || by === 'address'),
  )
  .flatMap(([limiter, { by }]) =>
    by === 'client' ? ['client', 'instance'].map((key) => ({ limiter, key })) : [{ limiter, key: by }],
  );
