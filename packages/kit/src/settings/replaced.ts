import type { Environment, SettingsSpec } from './setting.ts';

/** A value that is out of range, and what is used instead. */
export type ReplacedSetting = { readonly variable: string; readonly value: string; readonly used: string };

/** Finds the set variables whose value is not used as it is, for one warning each. */
export function findReplaced(spec: SettingsSpec, env: Environment): ReplacedSetting[] {
  return Object.values(spec).flatMap((setting) => {
    const variable = [setting.env, ...setting.aliases].find((name) => env[name] !== undefined);
    const value = variable === undefined ? undefined : env[variable];
    if (variable === undefined || value === undefined) return [];
    const used = setting.replacement?.(value);
    return used === undefined ? [] : [{ variable, value, used }];
  });
}
