import type { Millis } from '@tollgate/kit/duration';
import { duration, type Setting, type SettingOptions, text } from '@tollgate/kit/settings';
import { parseQuota, type Quota } from '../domain/quota.ts';

/** A length of time: whole seconds, or a duration in Go's syntax. The default is in Go's syntax. */
export function seconds(
  options: SettingOptions<string> & { readonly min?: string; readonly max?: string },
): Setting<Millis> {
  const base = duration(options);
  return Object.freeze({
    ...base,
    form: `${base.form}, or whole seconds`,
    parse: (value) => base.parse(/^[+-]?\d+$/.test(value) ? `${value}s` : value),
  });
}

/** Like `seconds`, with a meaning of its own when it is not set. */
export function optionalSeconds(
  options: Omit<SettingOptions<string>, 'default' | 'required'>,
): Setting<Millis | undefined> {
  const base = seconds({ ...options, default: '0s' });
  return Object.freeze({ ...base, fallback: { value: undefined, text: '' } });
}

/** A moment, as RFC 3339 writes it; absent when empty. @see RFC 3339 §5.6 https://www.rfc-editor.org/rfc/rfc3339#section-5.6 */
export function optionalInstant(
  options: Omit<SettingOptions<string>, 'default' | 'required'>,
): Setting<Date | undefined> {
  const base = text({ ...options, default: '' });
  return Object.freeze({
    ...base,
    form: 'a time such as 2026-01-31T12:00:00Z',
    parse: parseInstant,
    fallback: { value: undefined, text: '' },
  });
}

function parseInstant(value: string): Date | undefined {
  if (!/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/.test(value)) return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : new Date(ms);
}

/** A number of events per time: `30` (per hour), `10/5m`; 0 lets none pass. */
export function quota(options: SettingOptions<string>): Setting<Quota> {
  const base = text(options);
  const fallback = base.fallback && { value: definedQuota(base.fallback.value), text: base.fallback.text };
  return Object.freeze({
    ...base,
    form: 'a number of events per hour such as 30, or per time such as 10/5m',
    parse: parseQuota,
    fallback,
  });
}

function definedQuota(value: string): Quota {
  const parsed = parseQuota(value);
  if (parsed === undefined) throw new TypeError(`a setting is defined with a bad quota: ${value}`);
  return parsed;
}
