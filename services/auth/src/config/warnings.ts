import { type Environment, findMisspelled, type Setting } from '@tollgate/kit/settings';
import { compareText } from '@tollgate/kit/text';
import { ignoredSettings, providerSwitches, unservedDetails } from './gotrue.ts';
import { unsignedHooks } from './hooks.ts';
import { type Settings, settingsSpecFor } from './settings.ts';
import { missingRelyingParty } from './webauthn.ts';

/** A variable that has no effect. Does not contain its value. */
export interface SettingWarning {
  readonly variable: string;
  readonly kind: 'unknown' | 'no effect' | 'provider not served' | 'incomplete';
  /** Behavior that applies instead. */
  readonly detail?: string;
  /** A known name that is similar. */
  readonly meant?: string;
}

/** Settings that are missing for an enabled feature, which works in part without them. */
export function incompleteSettings(settings: Settings): SettingWarning[] {
  const kind = 'incomplete' as const;
  const unsigned = unsignedHooks(settings).map((variable) => ({
    variable,
    kind,
    detail: 'not set: requests to the hook are not signed, so that anyone who finds its URL can send some',
  }));
  const usesWebAuthn = settings['mfaEnabled:webauthn:enroll'] || settings['mfaEnabled:webauthn:verify'];
  const missing = usesWebAuthn ? missingRelyingParty(settings) : [];
  const detail = 'not set: second factors by WebAuthn are rejected';
  return [...unsigned, ...missing.map((variable) => ({ variable, kind, detail }))];
}

const prefixes = ['SVC_', 'GOTRUE_'];

/** Unknown and misspelled variables, and settings of unsupported features. */
export function settingWarnings(env: Environment): SettingWarning[] {
  const spec = settingsSpecFor(env);
  const known = new Map(
    Object.values(spec).flatMap((setting) =>
      [setting.env, ...setting.aliases].map((variable) => [variable, setting] as const),
    ),
  );
  const misspelled = new Map(
    findMisspelled(spec, env, prefixes).map(({ variable, meant }) => [variable, meant]),
  );
  return Object.keys(env)
    .filter((variable) => env[variable] !== undefined)
    .sort(compareText)
    .flatMap((variable) =>
      getWarnings(variable, {
        value: env[variable] ?? '',
        setting: known.get(variable),
        meant: misspelled.get(variable),
      }),
    );
}

function getWarnings(
  variable: string,
  {
    value,
    setting,
    meant,
  }: {
    readonly value: string;
    readonly setting: Setting<unknown> | undefined;
    readonly meant: string | undefined;
  },
): SettingWarning[] {
  const prefix = prefixes.find((start) => variable.startsWith(start));
  const name = variable.slice(prefix?.length ?? 0);
  if (prefix !== undefined && providerSwitches.has(name))
    return isOff(value) ? [] : [{ variable, kind: 'provider not served' }];
  if (setting !== undefined) return isIneffective(setting, value) ? [{ variable, kind: 'no effect' }] : [];
  if (prefix === undefined) return misspelling(variable, meant);
  if (unservedDetails.has(name)) return [];
  const detail = Object.hasOwn(ignoredSettings, name) ? ignoredSettings[name] : undefined;
  if (detail !== undefined) return isOff(value) ? [] : [{ variable, kind: 'no effect', detail }];
  return [{ variable, kind: 'unknown', ...(meant !== undefined && { meant }) }];
}

function misspelling(variable: string, meant: string | undefined): SettingWarning[] {
  return meant === undefined ? [] : [{ variable, kind: 'unknown', meant }];
}

function isOff(value: string): boolean {
  return /^(?:0|f|false|)$/i.test(value.trim());
}

/** Has no effect, and another value than its default. */
function isIneffective(setting: Setting<unknown>, value: string): boolean {
  return (
    'hasEffect' in setting &&
    !isOff(value) &&
    value !== setting.fallback?.text &&
    !unservedDetails.has(withoutPrefix(setting))
  );
}

function withoutPrefix({ env }: Setting<unknown>): string {
  return env.replace(/^SVC_/, '');
}

/**
 * Removes the variables that Kubernetes adds for a Service named `gotrue` or `svc-…`.
 * `GOTRUE_PORT=tcp://10.0.0.1:9999` would be read as the port to listen on.
 *
 * @see https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
export function withoutServiceLinks(env: Environment): Environment {
  const services = Object.keys(env).flatMap(
    (variable) => /^((?:SVC|GOTRUE)(?:_\w+)?)_SERVICE_HOST$/.exec(variable)?.[1] ?? [],
  );
  if (services.length === 0) return env;
  return Object.fromEntries(
    Object.entries(env).filter(
      ([variable, value]) => !services.some((service) => isLink(variable, { service, value })),
    ),
  );
}

function isLink(
  variable: string,
  { service, value }: { readonly service: string; readonly value: string | undefined },
): boolean {
  if (!variable.startsWith(`${service}_`)) return false;
  const rest = variable.slice(service.length + 1);
  if (rest === 'PORT') return /^(?:tcp|udp|sctp):\/\//.test(value ?? '');
  return (
    /^SERVICE_(?:HOST|PORT(?:_\w+)?)$/.test(rest) ||
    /^PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(rest)
  );
}
