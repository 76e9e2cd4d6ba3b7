import { compareText } from '@tollgate/kit/compare-text';
import { type Environment, findMisspelled, type Setting } from '@tollgate/kit/settings';
import { ignoredSettings, providerSwitches, unservedDetails } from './gotrue-settings.ts';
import { settingsSpec } from './settings.ts';

/** A variable that is set and changes nothing. Never contains a value. */
export interface SettingWarning {
  readonly variable: string;
  readonly kind: 'unknown' | 'no effect' | 'provider not served';
  /** What holds instead. */
  readonly detail?: string;
  /** A known name that is similar. */
  readonly meant?: string;
}

const prefixes = ['SVC_', 'GOTRUE_'];
/** Read by GoTrue without a prefix, for a feature that is not served. */
const bareDetails = ['RP_ID'];

/** Unknown variables with our prefixes, misspelled ones, and settings of unserved features. */
export function settingWarnings(env: Environment): SettingWarning[] {
  const misspelled = new Map(
    findMisspelled(settingsSpec, env, prefixes).map(({ variable, meant }) => [variable, meant]),
  );
  return Object.keys(env)
    .filter((variable) => env[variable] !== undefined)
    .sort(compareText)
    .flatMap((variable) =>
      warningOf(variable, { value: env[variable] ?? '', meant: misspelled.get(variable) }),
    );
}

const known = new Map(
  Object.values(settingsSpec).flatMap((setting) =>
    [setting.env, ...setting.aliases].map((variable) => [variable, setting] as const),
  ),
);

function warningOf(
  variable: string,
  { value, meant }: { readonly value: string; readonly meant: string | undefined },
): SettingWarning[] {
  const prefix = prefixes.find((start) => variable.startsWith(start));
  const name = variable.slice(prefix?.length ?? 0);
  if (prefix !== undefined && providerSwitches.has(name))
    return isOff(value) ? [] : [{ variable, kind: 'provider not served' }];
  const setting = known.get(variable);
  if (setting !== undefined) return changesNothing(setting, value) ? [{ variable, kind: 'no effect' }] : [];
  if (prefix === undefined) return misspelling(variable, meant);
  if (unservedDetails.has(name)) return [];
  const detail = Object.hasOwn(ignoredSettings, name) ? ignoredSettings[name] : undefined;
  if (detail !== undefined) return isOff(value) ? [] : [{ variable, kind: 'no effect', detail }];
  return [{ variable, kind: 'unknown', ...(meant !== undefined && { meant }) }];
}

function misspelling(variable: string, meant: string | undefined): SettingWarning[] {
  return meant === undefined || bareDetails.includes(variable) ? [] : [{ variable, kind: 'unknown', meant }];
}

/** A switch that is off needs no warning. */
function isOff(value: string): boolean {
  return /^(?:0|f|false|)$/i.test(value.trim());
}

/** Has no effect and is set to something other than its default. */
function changesNothing(setting: Setting<unknown>, value: string): boolean {
  return (
    'hasEffect' in setting &&
    !isOff(value) &&
    value !== setting.fallback?.text &&
    !unservedDetails.has(nameOf(setting))
  );
}

function nameOf({ env }: Setting<unknown>): string {
  return env.replace(/^SVC_/, '');
}
