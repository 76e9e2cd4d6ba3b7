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
import { type Millis, parseInstant } from '@tollgate/kit/time';
import { parseGlob } from './glob.ts';
import { parseQuota, type Quota } from './quotas.ts';

/** Text. An empty value is the default, as in GoTrue: compose files often set empty variables. */
export function textOrDefault(
  options: Parameters<typeof text>[0] & { readonly default: string },
): Setting<string> {
  const base = text(options);
  return Object.freeze({ ...base, parse: (value) => (value === '' ? options.default : base.parse(value)) });
}

/** Seconds, or a duration in Go's syntax, in which the default must be. */
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

/** A period in seconds; 0 is the default, as in GoTrue. */
export function lifetime(
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

/** A period in seconds without a default. */
export function optionalSeconds(
  options: Omit<SettingOptions<string>, 'default' | 'required'>,
): Setting<Millis | undefined> {
  const base = seconds({ ...options, default: '0s' });
  return Object.freeze({ ...base, fallback: { value: undefined, text: '' } });
}

/** `phone:code,phone:code`. A leading `+` and spaces in numbers are ignored. */
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

/** A time in RFC 3339 format. */
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

/** Events per time: `30` (per hour), `10/5m`. 0 rejects all. */
export function quota(options: SettingOptions<string>): Setting<Quota> {
  const base = text(options);
  const fallback = base.fallback && { value: parseDefault(base.fallback.value), text: base.fallback.text };
  return Object.freeze({
    ...base,
    form: 'a number of events per hour such as 30, or per time such as 10/5m',
    parse: parseQuota,
    fallback,
  });
}

function parseDefault(value: string): Quota {
  const parsed = parseQuota(value);
  if (parsed === undefined) throw new TypeError(`invalid default quota: ${value}`);
  return parsed;
}

/** Hosts separated by commas, in lower case. */
export function hostList(options: SettingOptions<readonly string[]>): Setting<readonly string[]> {
  const base = list(options);
  return Object.freeze({ ...base, parse: (value) => base.parse(value.toLowerCase()) });
}

/** URL globs separated by commas, except for commas in braces. */
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

/** The text of a setting, from the first of its names that is set. */
export function givenValue(
  { env: main, aliases }: Pick<Setting<unknown>, 'env' | 'aliases'>,
  env: Environment,
): string | undefined {
  return [main, ...aliases].map((variable) => env[variable]).find((value) => value !== undefined);
}

/** A setting that is validated and ignored. */
export type SettingWithoutEffect<T> = Setting<T> & { readonly hasEffect: false };

/** Marks a setting that is ignored. The docs state it, and the start warns if it is set. */
export function withoutEffect<T>(setting: Setting<T>): SettingWithoutEffect<T> {
  return Object.freeze({ ...setting, doc: `Accepted, no effect. ${setting.doc}`, hasEffect: false });
}

const namedNetworks: readonly string[] = ['loopback', 'linklocal', 'uniquelocal'];

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

/** The variable of a setting and its aliases. */
export interface VariableNames {
  readonly env: string;
  readonly aliases: readonly string[];
}

/** `SVC_<name>`, with the alias `GOTRUE_<name>` for existing GoTrue deployments. */
export function svc(name: string): VariableNames {
  return { env: `SVC_${name}`, aliases: [`GOTRUE_${name}`] };
}

/** Adds an alias without prefix to the names of `svc`, as GoTrue has for some variables. */
export function svcOrBare(name: string): VariableNames {
  return { env: `SVC_${name}`, aliases: [`GOTRUE_${name}`, name] };
}

/** Names without prefix, each with aliases with `SVC_` and `GOTRUE_`. The first is the main one. */
export function bareNames(env: string, ...others: readonly string[]): VariableNames {
  const names = [env, ...others].flatMap((name) => [name, `SVC_${name}`, `GOTRUE_${name}`]);
  return { env, aliases: names.filter((name) => name !== env) };
}

/**
 * A name without prefix, with aliases with `SVC_` and `GOTRUE_`, and further aliases with these.
 */
export function bare(name: string, ...others: readonly string[]): VariableNames {
  return {
    env: name,
    aliases: [name, ...others].flatMap((other) => [`SVC_${other}`, `GOTRUE_${other}`]),
  };
}
