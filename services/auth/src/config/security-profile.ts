import { type Environment, oneOf, type Setting, type SettingProblem } from '@tollgate/kit/settings';
import { givenValue, svc } from './builders.ts';
import { optionalNotifications } from './mail.ts';

export const securityProfileSettings = {
  securityProfile: oneOf(['standard', 'strict'], {
    ...svc('SECURITY_PROFILE'),
    group: 'Security profile',
    default: 'standard',
    doc: 'Defaults of all settings that have another one with `strict`. `standard` is for environments and databases of GoTrue, `strict` for new installations: what OWASP ASVS asks for. A setting of its own overrides. `tollgate-auth check --asvs` shows what holds.',
  }),
};

const notifications = Object.fromEntries(
  optionalNotifications.map((kind) => [`mailNotification:${kind}`, 'true']),
);

/** Defaults with the profile `strict`, by key, in the form of the environment. */
export const strictDefaults: Readonly<Record<string, string>> = {
  passwordMinLength: '12',
  // 64 characters of any script.
  passwordMaxBytes: '1024',
  passwordRejectContext: 'true',
  passwordHibpEnabled: 'true',
  updatePasswordRequireCurrentPassword: 'true',
  recentSignInMs: '10m',
  uniformAnswers: 'true',
  mailerOtpExpMs: '10m',
  mailerLinkPageEnabled: 'true',
  ...notifications,
  jwtIssuerRequired: 'true',
  jwtAudienceRequired: 'true',
  tokenDigests: 'true',
  // NIST SP 800-63B §4.1.3 has 30 days.
  sessionTimeboxMs: '720h',
  sessionInactivityTimeoutMs: '168h',
  sessionAllowLowAalMs: '10m',
};

type Spec = Readonly<Record<string, Setting<unknown>>>;

/** Settings with another default in the profile, and that default. */
export function profileDefaults(spec: Spec): readonly { setting: Setting<unknown>; value: string }[] {
  return Object.entries(strictDefaults).flatMap(([key, value]) => {
    const setting = spec[key];
    return setting === undefined ? [] : [{ setting, value }];
  });
}

/** Whether the profile is `strict`. */
export function isStrict(env: Environment): boolean {
  const { securityProfile } = securityProfileSettings;
  return securityProfile.parse(givenValue(securityProfile, env) ?? '') === 'strict';
}

/** Adds the defaults of the profile for variables that are unset or empty. */
export function withSecurityProfile(spec: Spec, env: Environment): Environment {
  if (!isStrict(env)) return env;
  const unset = profileDefaults(spec).filter(({ setting }) => !givenValue(setting, env));
  const replaced = new Set(unset.flatMap(({ setting }) => [setting.env, ...setting.aliases]));
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !replaced.has(name))),
    ...Object.fromEntries(unset.map(({ setting, value }) => [setting.env, value])),
  };
}

/** The output length of SHA-256. @see RFC 7518 §3.2 */
const minSecretBytes = 32;

interface SecretSettings {
  readonly securityProfile: 'standard' | 'strict';
  readonly jwtSecret: string;
}

/** A short secret can be guessed from one token. */
export function longSecret(
  s: SecretSettings,
  {
    problem,
    variableName,
  }: {
    readonly problem: (key: 'jwtSecret', expected: string) => SettingProblem;
    readonly variableName: (key: 'securityProfile') => string;
  },
): SettingProblem | undefined {
  return s.securityProfile === 'standard' || Buffer.byteLength(s.jwtSecret) >= minSecretBytes
    ? undefined
    : problem(
        'jwtSecret',
        `at least ${minSecretBytes} bytes, because ${variableName('securityProfile')} is strict`,
      );
}
