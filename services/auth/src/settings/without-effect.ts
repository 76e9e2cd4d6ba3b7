import type { Setting } from '@tollgate/kit/settings';

/** A setting that is read and checked, and changes nothing. */
export type SettingWithoutEffect<T> = Setting<T> & { readonly hasEffect: false };

/** Marks a setting that is accepted and changes nothing: the generated page says so, and the start warns of those that are set. */
export function withoutEffect<T>(setting: Setting<T>): SettingWithoutEffect<T> {
  return Object.freeze({ ...setting, doc: `Accepted, no effect. ${setting.doc}`, hasEffect: false });
}
