import { bool, type Setting, type SettingSchema, text } from '@tollgate/kit/settings';
import { svc } from './variable-names.ts';

/** A setting of GoTrue that switches on what does not exist here. */
export type NotServed<T> = Setting<T> & { readonly isServed: false };

const switchedOff: SettingSchema = { type: 'boolean', enum: [false] };

interface NotServedOptions {
  readonly group: string;
  /** What it would switch on, as a noun phrase. */
  readonly feature: string;
}

/**
 * A switch that can only be off. `true` stops the start: ignoring it would leave out a protection
 * that the operator relies on.
 */
export function notServed(name: string, { group, feature }: NotServedOptions): NotServed<boolean> {
  const base = bool({ ...svc(name), group, default: false, doc: `Not served yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `false: ${feature} is not served yet`,
    schema: switchedOff,
    parse: (value) => (base.parse(value) === false ? false : undefined),
    isServed: false,
  });
}

/** A restriction that can only be absent, for the same reason. */
export function notServedText(name: string, { group, feature }: NotServedOptions): NotServed<string> {
  const base = text({ ...svc(name), group, default: '', doc: `Not served yet: ${feature}.` });
  return Object.freeze({
    ...base,
    form: `nothing: ${feature} is not served yet`,
    parse: (value) => (value.trim() === '' ? '' : undefined),
    isServed: false,
  });
}
