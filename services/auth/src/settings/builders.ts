import type { Millis } from '@tollgate/kit/duration';
import { duration, pairs, type Setting, type SettingOptions, text } from '@tollgate/kit/settings';
import { parseQuota, type Quota } from '../domain/quota.ts';

/** Text; an empty one is the default, as with GoTrue: compose files often set variables to nothing. */
export function textOrDefault(
  options: Parameters<typeof text>[0] & { readonly default: string },
): Setting<string> {
  const base = text(options);
  return Object.freeze({ ...base, parse: (value) => (value === '' ? options.default : base.parse(value)) });
}

/** A length of time: seconds, or a duration in Go's syntax. The default is in Go's syntax. */
export function seconds(
  options: SettingOptions<string> & { readonly min?: string; readonly max?: string },
): Setting<Millis> {
  const base = duration(options);
  return Object.freeze({
    ...base,
    form: `${base.form}, or seconds`,
    schema: { ...base.schema, pattern: `^[+-]?[0-9]+([.][0-9]+)?$|${base.schema.pattern}` },
    parse: (value) => base.parse(/^[+-]?\d+(?:\.\d+)?$/.test(value) ? `${value}s` : value),
  });
}

/** The life of something, as `seconds` reads it; 0 is the default, as with GoTrue. */
export function life(
  options: SettingOptions<string> & { readonly default: string; readonly min?: string },
): Setting<Millis> {
  const base = seconds(options);
  const fallback = base.fallback?.value;
  const isZero = (value: string): boolean => /^[+-]?0+(?:\.0+)?(?:ns|us|µs|μs|ms|s|m|h)?$/.test(value);
  return Object.freeze({
    ...base,
    form: `${base.form}; 0 is the default`,
    parse: (value) => (isZero(value) ? fallback : base.parse(value)),
  });
}

/** Like `seconds`, with a meaning of its own when it is not set. */
export function optionalSeconds(
  options: Omit<SettingOptions<string>, 'default' | 'required'>,
): Setting<Millis | undefined> {
  const base = seconds({ ...options, default: '0s' });
  return Object.freeze({ ...base, fallback: { value: undefined, text: '' } });
}

/** Codes by phone number, `phone:code,phone:code`. Ignores a leading `+` and blanks of a number. */
export function codesByPhone(
  options: SettingOptions<Readonly<Record<string, string>>>,
): Setting<Readonly<Record<string, string>>> {
  const base = pairs(options);
  return Object.freeze({
    ...base,
    parse: (value) => {
      const given = base.parse(value);
      if (given === undefined) return undefined;
      const codes = Object.entries(given).map(([phone, code]) => [phoneDigits(phone), code] as const);
      return codes.every(([phone]) => phone !== '') ? Object.freeze(Object.fromEntries(codes)) : undefined;
    },
  });
}

function phoneDigits(phone: string): string {
  return phone.replace(/^\+/, '').replaceAll(' ', '');
}

/** A moment, as RFC 3339 writes it; absent when empty. @see RFC 3339 §5.6 https://www.rfc-editor.org/rfc/rfc3339#section-5.6 */
export function optionalInstant(
  options: Omit<SettingOptions<string>, 'default' | 'required'>,
): Setting<Date | undefined> {
  const base = text({ ...options, default: '' });
  return Object.freeze({
    ...base,
    form: 'a time such as 2026-01-31T12:00:00Z',
    parse: (value) => (value.trim() === '' ? endOfTime : parseInstant(value.trim())),
    fallback: { value: undefined, text: '' },
  });
}

/** The last moment that a Date can hold. */
const endOfTime = new Date(8_640_000_000_000_000);

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
