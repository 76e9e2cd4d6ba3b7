import {
  defineSettings,
  type Environment,
  type ParsedSettings,
  parseSettings,
  type SettingProblem,
  type SettingsCheck,
  type SettingValues,
} from '@tollgate/kit/settings';
import { sessionTargets, sslModes } from '../db/connection-string.ts';
import { type ProviderName, providerNames } from '../identity-providers/registry.ts';
import { parseSigningKeys } from '../keys/signing-keys.ts';
import { apiKeyChecks, apiKeySettings } from './api-keys.ts';
import { captchaChecks, captchaSettings } from './captcha.ts';
import {
  bytesThatBcryptReads,
  databaseSettings,
  digestsUnlessShared,
  encryptionChecks,
  encryptionSettings,
} from './database.ts';
import { extAuthzChecks, extAuthzSettings } from './ext-authz.ts';
import { unservedSettings } from './gotrue.ts';
import { eventSettings, hookChecks, hookSettings } from './hooks.ts';
import { type LocalizedSettings, languageSettings, localizedSettings } from './languages.ts';
import { type MailCheck, mailChecks, mailSettings, mailTextSettings } from './mail.ts';
import { mfaSettings } from './mfa.ts';
import { oauthServerChecks, oauthServerSettings } from './oauth-server.ts';
import { organizationChecks, organizationSettings } from './organizations.ts';
import { pageChecks, pageSettings } from './pages.ts';
import { policyChecks, policySettings } from './policies.ts';
import { longSecret, securityProfileSettings, withSecurityProfile } from './security-profile.ts';
import { coreSettings, serverSettings, telemetrySettings } from './server.ts';
import {
  customProviderSettings,
  limitSettings,
  passwordSettings,
  providerSettings,
  web3Settings,
} from './sign-in.ts';
import { smsSettings } from './sms.ts';
import { jwtSettings, sessionSettings } from './tokens.ts';
import { webAuthnChecks, webAuthnSettings } from './webauthn.ts';

/** All settings, in the order of docs/settings-auth.md. */
export const settingsSpec = defineSettings({
  ...securityProfileSettings,
  ...coreSettings,
  ...serverSettings,
  ...databaseSettings,
  ...encryptionSettings,
  ...jwtSettings,
  ...sessionSettings,
  ...passwordSettings,
  ...limitSettings,
  ...captchaSettings,
  ...mailSettings,
  ...mailTextSettings,
  ...languageSettings,
  ...smsSettings,
  ...pageSettings,
  ...mfaSettings,
  ...webAuthnSettings,
  ...organizationSettings,
  ...hookSettings,
  ...eventSettings,
  ...extAuthzSettings,
  ...policySettings,
  ...apiKeySettings,
  ...telemetrySettings,
  ...providerSettings,
  ...web3Settings,
  ...customProviderSettings,
  ...oauthServerSettings,
  ...unservedSettings,
});

type Spec = typeof settingsSpec & LocalizedSettings;

export type Settings = SettingValues<Spec>;

type Check = SettingsCheck<Spec>;

/** All settings that an environment may have: with those for its languages. */
export function settingsSpecFor(env: Environment): Spec {
  return { ...settingsSpec, ...localizedSettings(env).spec };
}

/** Apps have URLs such as `myapp://login`. */
const siteUrl: Check = (s, { problem }) =>
  isWebUrl(s.siteUrl) || isAppUrl(s.siteUrl)
    ? undefined
    : problem('siteUrl', 'an absolute URL such as https://example.com or myapp://login');

const apiExternalUrl: Check = (s, { problem }) =>
  isWebUrl(s.apiExternalUrl) ? undefined : problem('apiExternalUrl', 'an absolute URL with http or https');

function isWebUrl(text: string): boolean {
  return /^https?:\/\/[^/]/i.test(text) && URL.canParse(text);
}

/** Excludes schemes that browsers execute or display, and `localhost:3000`, which has no scheme. */
function isAppUrl(text: string): boolean {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/i.exec(text) ?? [];
  const isForbidden = /^(?:https?|javascript|data|vbscript|file|blob|about|filesystem|view-source)$/i.test(
    scheme,
  );
  return scheme !== '' && !isForbidden && !/^\d/.test(rest) && URL.canParse(text);
}

const signingKeys: Check = (s, { problem }) => {
  // Keys of a file are validated when it is read.
  const parsed = parseSigningKeys(s.jwtKeysFile === '' ? s : { ...s, jwtValidMethods: [] });
  return parsed.ok ? undefined : problem('jwtKeys', parsed.expected);
};

const oneSourceOfKeys: Check = (s, { problem, variableName }) =>
  s.jwtKeys !== '' && s.jwtKeysFile !== ''
    ? problem('jwtKeysFile', `an empty value, because ${variableName('jwtKeys')} is set`)
    : undefined;

const senderOfMails: Check = (s, { problem, variableName }) =>
  s.mode === 'production' && s.smtpHost !== '' && s.smtpAdminEmail === ''
    ? problem('smtpAdminEmail', `the sender address, because ${variableName('smtpHost')} is set`)
    : undefined;

/**
 * An unknown `sslmode` must not silently weaken TLS, and a read-only server could sign no user in.
 */
const connectionParameter =
  (name: string, known: readonly string[]): Check =>
  (s, { problem }) => {
    const value = new RegExp(`[?&]${name}=([^&]*)`).exec(s.databaseUrl)?.[1];
    return value === undefined || known.includes(value)
      ? undefined
      : problem('databaseUrl', `${name} to be one of ${known.join(', ')}`);
  };

/** A path is relative to SITE_URL, which must be a web site. */
const templateUrl =
  (key: MailCheck['key']): Check =>
  (s, { problem, variableName }) =>
    !key.startsWith('mailTemplate:') || /^https?:/i.test(s.siteUrl) || /^(?:https?:.*)?$/i.test(s[key] ?? '')
      ? undefined
      : problem(key, `a URL with http or https, because ${variableName('siteUrl')} is not a web site`);

/** It writes codes to the log, with which readers of the log could sign in. */
const noLogGateway: Check = (s, { problem }) =>
  s.mode === 'production' && s.smsProvider === 'log'
    ? problem('smsProvider', 'another gateway: log is for development mode only')
    : undefined;

const mailCheck =
  (check: MailCheck): Check =>
  (s, { problem }) => {
    const expected = check.problem(s[check.key] ?? '');
    return expected === undefined ? undefined : problem(check.key, expected);
  };

/** Without it, the provider would reject every sign-in. */
const registeredClient =
  (name: ProviderName): Check =>
  (s, { problem, variableName }) =>
    s[`externalEnabled:${name}`] && s[`externalClientId:${name}`].length === 0
      ? problem(
          `externalClientId:${name}`,
          `the client id, because ${variableName(`externalEnabled:${name}`)} is true`,
        )
      : undefined;

const keycloakUrl: Check = (s, { problem }) =>
  s['externalEnabled:keycloak'] && s['externalUrl:keycloak'] === ''
    ? problem('externalUrl:keycloak', 'the URL of the realm')
    : undefined;

/** Hooks of other versions of GoTrue, such as HOOK_CUSTOM_SMS_PROVIDER_ENABLED. */
function otherHooks(env: Environment): SettingProblem[] {
  const known = new Set(Object.values(settingsSpec).flatMap(({ env: name, aliases }) => [name, ...aliases]));
  return Object.entries(env)
    .filter(([name]) => /^(?:SVC|GOTRUE)_HOOK_\w+_ENABLED$/.test(name) && !known.has(name))
    .filter(([, value]) => /^(?:1|t|true)$/i.test(value ?? ''))
    .map(([variable, value]) => ({
      variable,
      value: JSON.stringify(value),
      expected: 'false: there is no such hook',
    }));
}

/** Reads the settings from the environment. Returns all problems. */
export function readSettings(env: Environment): ParsedSettings<Spec> {
  const read = readKnownSettings(withSecurityProfile(settingsSpec, env));
  const hooks = otherHooks(env);
  return hooks.length === 0 ? read : { ok: false, problems: [...(read.ok ? [] : read.problems), ...hooks] };
}

function readKnownSettings(env: Environment): ParsedSettings<Spec> {
  const ofMails = [...mailChecks, ...localizedSettings(env).checks];
  return parseSettings(settingsSpecFor(env), env, {
    checks: [
      siteUrl,
      apiExternalUrl,
      signingKeys,
      longSecret,
      digestsUnlessShared,
      bytesThatBcryptReads,
      oneSourceOfKeys,
      senderOfMails,
      connectionParameter('sslmode', sslModes),
      connectionParameter('target_session_attrs', sessionTargets),
      ...ofMails.flatMap((check) => [mailCheck(check), templateUrl(check.key)]),
      noLogGateway,
      ...captchaChecks,
      ...webAuthnChecks,
      ...pageChecks,
      ...providerNames.map(registeredClient),
      keycloakUrl,
      ...extAuthzChecks,
      ...policyChecks,
      ...apiKeyChecks,
      ...oauthServerChecks,
      ...organizationChecks,
      ...encryptionChecks,
      ...hookChecks,
    ],
  });
}
