import {
  defineSettings,
  type Environment,
  type ParsedSettings,
  parseSettings,
  type SettingsCheck,
  type SettingsOf,
} from '@tollgate/kit/settings';
import { parseSigningKeys } from '../tokens/signing-keys.ts';
import { coreSettings } from './core-settings.ts';
import { databaseSettings } from './database-settings.ts';
import { encryptionChecks, encryptionSettings } from './encryption-settings.ts';
import { extAuthzChecks } from './ext-authz-checks.ts';
import { extAuthzSettings } from './ext-authz-settings.ts';
import { captchaSettings, hookSettings, linkingSettings } from './hook-settings.ts';
import { jwtSettings } from './jwt-settings.ts';
import { limitSettings } from './limit-settings.ts';
import { type MailCheck, mailChecks } from './mail-checks.ts';
import { mailSettings } from './mail-settings.ts';
import { mailTextSettings } from './mail-text-settings.ts';
import { mfaSettings } from './mfa-settings.ts';
import { passwordSettings } from './password-settings.ts';
import { providerSettings } from './provider-settings.ts';
import { serverSettings } from './server-settings.ts';
import { sessionSettings } from './session-settings.ts';
import { smsSettings } from './sms-settings.ts';
import { telemetrySettings } from './telemetry-settings.ts';

/** Every setting of the service, in the order of docs/settings-auth.md. */
export const settingsSpec = defineSettings({
  ...coreSettings,
  ...serverSettings,
  ...databaseSettings,
  ...encryptionSettings,
  ...jwtSettings,
  ...sessionSettings,
  ...passwordSettings,
  ...limitSettings,
  ...mailSettings,
  ...mailTextSettings,
  ...smsSettings,
  ...mfaSettings,
  ...extAuthzSettings,
  ...telemetrySettings,
  ...captchaSettings,
  ...linkingSettings,
  ...providerSettings,
  ...hookSettings,
});

/** The settings as the composition root sees them. */
export type Settings = SettingsOf<typeof settingsSpec>;

type Check = SettingsCheck<typeof settingsSpec>;

const absoluteUrl =
  (key: 'siteUrl' | 'apiExternalUrl'): Check =>
  (s, { nameOf, shownOf }) => {
    if (/^https?:\/\/[^/]/.test(s[key]) && URL.canParse(s[key])) return undefined;
    const value = shownOf(key);
    return {
      variable: nameOf(key),
      ...(value !== undefined && { value }),
      expected: 'an absolute URL with http or https',
    };
  };

const signingKeys: Check = (s, { nameOf }) => {
  const parsed = parseSigningKeys(s);
  return parsed.ok
    ? undefined
    : { variable: nameOf('jwtKeys'), value: '(hidden)', expected: parsed.expected };
};

const oneSourceOfKeys: Check = (s, { nameOf }) =>
  s.jwtKeys !== '' && s.jwtKeysFile !== ''
    ? {
        variable: nameOf('jwtKeysFile'),
        value: s.jwtKeysFile,
        expected: `nothing, as ${nameOf('jwtKeys')} is set: keys come from one of them`,
      }
    : undefined;

/** Development mode shows mails on a page; everybody else needs somebody to deliver them. */
const requiredInProduction =
  (key: 'smtpAdminEmail' | 'smtpHost' | 'smtpPort'): Check =>
  (s, { nameOf }) =>
    s.mode === 'production' && (s[key] === '' || s[key] === 0)
      ? { variable: nameOf(key), expected: `${settingsSpec[key].form}; it must be set` }
      : undefined;

/** It writes codes to the log, where whoever reads that could sign in with them. */
const noLogGateway: Check = (s, { nameOf }) =>
  s.mode === 'production' && s.smsProvider === 'log'
    ? { variable: nameOf('smsProvider'), value: 'log', expected: 'another gateway: log is for development' }
    : undefined;

/** What can be known of mails before one is sent. */
const mailCheck =
  (check: MailCheck): Check =>
  (s, { nameOf, shownOf }) => {
    const expected = check.problem(s[check.key]);
    if (expected === undefined) return undefined;
    const value = shownOf(check.key);
    return { variable: nameOf(check.key), ...(value !== undefined && { value }), expected };
  };

/** Reads the settings from the environment; all problems at once. */
export function readSettings(env: Environment): ParsedSettings<typeof settingsSpec> {
  return parseSettings(settingsSpec, env, {
    checks: [
      absoluteUrl('siteUrl'),
      absoluteUrl('apiExternalUrl'),
      signingKeys,
      oneSourceOfKeys,
      requiredInProduction('smtpAdminEmail'),
      requiredInProduction('smtpHost'),
      requiredInProduction('smtpPort'),
      ...mailChecks.map(mailCheck),
      noLogGateway,
      ...extAuthzChecks,
      ...encryptionChecks,
    ],
  });
}
