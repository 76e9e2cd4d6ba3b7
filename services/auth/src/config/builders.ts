import { isIP } from 'node:net';
import {
  duration,
  type Environment,
  list,
  pairs,
  type Setting,
  type SettingOptions,
  text,
} from '@tollgate/kit/settings';
import type { Millis } from '@tollgate/kit/time';
import { parseGlob } from '../http/glob.ts';
import { parseQuota, type Quota } from '../messages/quotas.ts';

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

/** Globs of URLs, separated by commas; a comma within braces belongs to the glob. */
export function globList(options: SettingOptions<readonly string[]>): Setting<readonly string[]> {
  return Object.freeze({
    ...list(options),
    form: 'URLs with globs such as https://*.example.com/**, separated by commas',
    parse: parseGlobs,
  });
}

function parseGlobs(text: string): readonly string[] | undefined {
  const globs = splitOutsideBraces(text)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  return globs.every((glob) => parseGlob(glob) !== undefined) ? globs : undefined;
}

function splitOutsideBraces(text: string): readonly string[] {
  const parts: string[] = [];
  let start = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\') at++;
    else if (char === '{') depth++;
    else if (char === '}') depth--;
    else if (char === ',' && depth <= 0) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, text.slice(start)];
}

/** The text of a setting as it is set, by whichever of its names; undefined when it is not. */
export function givenValue(
  { env: main, aliases }: Pick<Setting<unknown>, 'env' | 'aliases'>,
  env: Environment,
): string | undefined {
  return [main, ...aliases].map((variable) => env[variable]).find((value) => value !== undefined);
}

/** A setting that is read and checked, and changes nothing. */
export type SettingWithoutEffect<T> = Setting<T> & { readonly hasEffect: false };

/** Marks a setting that is accepted and changes nothing: the generated page says so, and the start warns of those that are set. */
export function withoutEffect<T>(setting: Setting<T>): SettingWithoutEffect<T> {
  return Object.freeze({ ...setting, doc: `Accepted, no effect. ${setting.doc}`, hasEffect: false });
}

/** Networks that have a name. */
const namedNetworks: readonly string[] = ['loopback', 'linklocal', 'uniquelocal'];

/** Addresses, networks and names of networks, separated by commas. */
export function proxyList(options: SettingOptions<readonly string[]>): Setting<readonly string[]> {
  const base = list(options);
  return Object.freeze({
    ...base,
    form: `addresses, networks such as 10.0.0.0/8, and ${namedNetworks.join(', ')}, separated by commas`,
    parse: (value) => {
      const entries = base.parse(value);
      return entries?.every(isProxy) ? entries : undefined;
    },
  });
}

function isProxy(entry: string): boolean {
  if (namedNetworks.includes(entry)) return true;
  const [address = '', length, ...others] = entry.split('/');
  const version = isIP(address);
  if (version === 0 || others.length > 0) return false;
  if (length === undefined) return true;
  return /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}

/** The variable of a setting and the other names it is read from. */
export interface VariableNames {
  readonly env: string;
  readonly aliases: readonly string[];
}

/** `SVC_<name>`, also read as `GOTRUE_<name>`, so that a deployment of that server can be taken over as it is. */
export function svc(name: string): VariableNames {
  return { env: `SVC_${name}`, aliases: [`GOTRUE_${name}`] };
}

/** Like `svc`, and also read without a prefix, as GoTrue reads a few of its variables. */
export function svcOrBare(name: string): VariableNames {
  return { env: `SVC_${name}`, aliases: [`GOTRUE_${name}`, name] };
}

/** Names without prefix, each also read under `SVC_` and `GOTRUE_`. The first is the main one. */
export function bareNames(env: string, ...others: readonly string[]): VariableNames {
  const names = [env, ...others].flatMap((name) => [name, `SVC_${name}`, `GOTRUE_${name}`]);
  return { env, aliases: names.filter((name) => name !== env) };
}

/** A variable without prefix, also read under `SVC_` and `GOTRUE_` with its own or another name. */
export function bare(name: string, ...others: readonly string[]): VariableNames {
  return {
    env: name,
    aliases: [name, ...others].flatMap((other) => [`SVC_${other}`, `GOTRUE_${other}`]),
  };
}
