import type { Environment, Setting, SettingsSpec } from '@tollgate/kit/settings';

/** A setting that is read and checked, and changes nothing. */
export type SettingWithoutEffect<T> = Setting<T> & { readonly hasEffect: false };

/** Marks a setting that is accepted and changes nothing: the generated page says so, and the start logs those that are set. */
export function withoutEffect<T>(setting: Setting<T>): SettingWithoutEffect<T> {
  return Object.freeze({ ...setting, doc: `Accepted, no effect. ${setting.doc}`, hasEffect: false });
}

/** The variables that are set and change nothing, by the names the operator used. */
export function findWithoutEffect(spec: SettingsSpec, env: Environment): string[] {
  return Object.values(spec)
    .filter((setting) => 'hasEffect' in setting)
    .flatMap(({ env: variable, aliases }) => [variable, ...aliases])
    .filter((variable) => env[variable] !== undefined);
}
