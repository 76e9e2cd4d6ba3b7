import type { Environment, Setting } from '@tollgate/kit/settings';
import { givenValue } from '../config/builders.ts';
import { settingsSpec } from '../config/settings.ts';
import type { Finding } from './check.ts';

interface Difference {
  readonly setting: Setting<unknown>;
  /** Whether a value, or none, works differently. */
  readonly applies: (value: string | undefined, env: Environment) => boolean;
  readonly text: string;
  /** GoTrue does not have the setting. */
  readonly isOurs?: true;
}

const isUnset = (value: string | undefined): boolean => value === undefined;
const isZero = (value: string | undefined): boolean => value !== undefined && /^0+[a-z]*$/.test(value);
const isEmpty = (value: string | undefined): boolean => value === undefined || value === '';

const canIdentifyClients = [
  settingsSpec.trustedProxies,
  settingsSpec.rateLimitHeader,
  settingsSpec.forwardedForEnabled,
];

const differences: readonly Difference[] = [
  {
    setting: settingsSpec.dbSharedWithGotrue,
    applies: (value) => !/^(?:1|t|true)$/i.test(value ?? ''),
    text: 'not set: GoTrue cannot check new passwords (unless it knows argon2id) and codes; set it to true while both run on one database',
    isOurs: true,
  },
  {
    setting: settingsSpec.smtpHost,
    applies: isEmpty,
    text: 'not set: no mail is sent, as with GoTrue; requests that would send one succeed',
  },
  {
    setting: settingsSpec.trustedProxies,
    applies: (_value, env) => canIdentifyClients.every((setting) => isEmpty(givenValue(setting, env))),
    text: 'not set: X-Forwarded-For is not believed, so that sessions and the audit log have the address of the proxy; GoTrue believes it from everyone',
    isOurs: true,
  },
  {
    setting: settingsSpec.refreshTokenReuseIntervalMs,
    applies: isUnset,
    text: 'not set: 10 s, which is 0 with GoTrue; a refresh whose reply was lost can be repeated',
  },
  {
    setting: settingsSpec.dbCleanupEnabled,
    applies: isUnset,
    text: 'not set: on, which is off with GoTrue; expired rows are removed',
  },
  {
    setting: settingsSpec.jwtDefaultGroupName,
    applies: isUnset,
    text: 'not set: new users have the role authenticated; with GoTrue none',
  },
  {
    setting: settingsSpec.jwtAdminRoles,
    applies: isEmpty,
    text: 'not set: svc_admin may call /admin as well',
  },
  {
    setting: settingsSpec.smtpMaxFrequencyMs,
    applies: isUnset,
    text: 'not set: 15 minutes between confirmations, 60 s between links; with GoTrue 60 s for all',
  },
  {
    setting: settingsSpec['mailTemplate:CONFIRMATION'],
    applies: isEmpty,
    text: 'not set: the built-in texts of mails are not those of GoTrue',
  },
  { setting: settingsSpec.smtpMaxFrequencyMs, applies: isZero, text: '0: no spacing; with GoTrue 60 s' },
  { setting: settingsSpec.smsMaxFrequencyMs, applies: isZero, text: '0: no spacing; with GoTrue 60 s' },
  {
    setting: settingsSpec.rateLimitHeader,
    applies: (value) => !isEmpty(value),
    text: 'limits are shared by all replicas, and their burst is the limit itself; with GoTrue each process counts, with bursts of 30',
  },
];

/** Read with this prefix here, and ignored by GoTrue, which reads the name without it. */
const ignoredByGotrue = ['API_EXTERNAL_URL', 'DB_NAMESPACE', 'REQUEST_ID_HEADER', 'PORT', 'DATABASE_URL'];

/** What an environment of GoTrue makes the server do differently, by the names that are set. */
export function settingDifferences(env: Environment): Finding[] {
  const known = differences
    .filter(({ setting, applies }) => applies(givenValue(setting, env), env))
    .map(({ setting, text, isOurs }) => ({
      subject: isOurs ? setting.env : settingName(setting, env),
      text,
    }));
  const prefixed = ignoredByGotrue
    .filter((name) => env[`GOTRUE_${name}`] !== undefined)
    .map((name) => ({ subject: `GOTRUE_${name}`, text: `takes effect here; GoTrue reads ${name} only` }));
  return [...known, ...prefixed];
}

/** As the operator spells it, or as GoTrue does. */
function settingName({ env: main, aliases }: Setting<unknown>, env: Environment): string {
  const names = [main, ...aliases];
  return (
    names.find((name) => env[name] !== undefined) ?? names.find((name) => name.startsWith('GOTRUE_')) ?? main
  );
}
