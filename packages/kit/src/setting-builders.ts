import type { Setting, SettingSchema } from './settings.ts';
import { durationPattern, formatDuration, type Millis, parseDuration } from './time.ts';

type Common = {
  /** The environment variable. */
  readonly env: string;
  /** Alternative names. */
  readonly aliases?: readonly string[];
  /** Its heading in the documentation. */
  readonly group: string;
  readonly doc: string;
  readonly secret?: boolean;
  /**
   * The value may have credentials in it: it is not printed, and need not be in a Secret. With
   * `path` it is a URL, of which only the origin is printed.
   */
  readonly hidden?: true | 'path';
};

/**
 * Options of every builder: a name, a group, a sentence, and either a default or `required: true`.
 */
export type SettingOptions<D> = Common &
  (
    | { readonly default: D; readonly required?: false }
    | { readonly required: true; readonly default?: never }
  );

type Range = { readonly min?: number; readonly max?: number };

/**
 * With `clamp`, a value out of range is replaced by the nearest bound, and `findReplaced` reports
 * it.
 */
type Clamping = { readonly clamp?: boolean };

function build<T, D>(
  options: SettingOptions<D>,
  kind: Pick<Setting<T>, 'form' | 'schema' | 'parse' | 'replacement'> & {
    readonly fallback: (value: D) => { value: T; text: string };
  },
): Setting<T> {
  return Object.freeze({
    env: options.env,
    aliases: options.aliases ?? [],
    group: options.group,
    doc: options.doc,
    secret: options.secret ?? false,
    ...(options.hidden && { hidden: options.hidden }),
    form: kind.form,
    schema: kind.schema,
    parse: kind.parse,
    ...(kind.replacement && { replacement: kind.replacement }),
    fallback: options.required === true ? undefined : kind.fallback(options.default),
  });
}

const asIs = <T>(value: T): { value: T; text: string } => ({ value, text: String(value) });
const within = (value: number, { min = -Infinity, max = Infinity }: Range): boolean =>
  value >= min && value <= max;

/** The bounds in JSON Schema. */
const bounded = (type: SettingSchema['type'], { min, max }: Range): SettingSchema => ({
  type,
  ...(min === undefined ? {} : { minimum: min }),
  ...(max === undefined ? {} : { maximum: max }),
});

/** Parses with `read` and checks the range. */
function ranged(
  range: Range,
  { clamp = false, zeroAs }: Clamping & { readonly zeroAs?: number },
  read: (text: string) => number | undefined,
  show: (value: number) => string = String,
): Pick<Setting<number>, 'parse' | 'replacement'> {
  const { min = -Infinity, max = Infinity } = range;
  const replace = (value: number): number =>
    value === 0 && zeroAs !== undefined ? zeroAs : Math.min(max, Math.max(min, value));
  if (!clamp) {
    return {
      parse(text) {
        const value = read(text);
        return value !== undefined && within(value, range) ? value : undefined;
      },
    };
  }
  return {
    parse(text) {
      const value = read(text);
      return value === undefined || within(value, range) ? value : replace(value);
    },
    replacement(text) {
      const value = read(text);
      return value === undefined || within(value, range) ? undefined : show(replace(value));
    },
  };
}

const clampForm = ({ clamp }: Clamping): string => (clamp === true ? '; others count as the nearest' : '');

function rangeForm({ min, max }: Range, show: (value: number) => string = String): string {
  if (min !== undefined && max !== undefined) return `, ${show(min)} to ${show(max)}`;
  if (min !== undefined) return `, ${show(min)} or more`;
  return max === undefined ? '' : `, ${show(max)} or less`;
}

/** Text; with `matches`, only text of that pattern. A required text must not be empty. */
export function text(
  options: SettingOptions<string> & {
    readonly matches?: { readonly pattern: RegExp; readonly form: string };
  },
): Setting<string> {
  const fits = (value: string): boolean =>
    options.matches?.pattern.test(value) ?? (value !== '' || options.required !== true);
  return build(options, {
    form: options.matches?.form ?? (options.required === true ? 'text that is not empty' : 'text'),
    schema: { type: 'string' },
    parse: (value) => (fits(value) ? value : undefined),
    fallback: asIs,
  });
}

const booleans = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false] as const),
]);

/** A boolean in Go's spelling: 1 t T true TRUE True, 0 f F false FALSE False. */
export function bool(options: SettingOptions<boolean>): Setting<boolean> {
  return build(options, {
    form: 'a boolean: true, t, 1, false, f or 0',
    schema: { type: 'boolean' },
    parse: (value) => booleans.get(value),
    fallback: asIs,
  });
}

/** A decimal integer. Refuses a leading zero, because other programs read `010` as eight. */
export function int(options: SettingOptions<number> & Range & Clamping): Setting<number> {
  const read = (value: string): number | undefined => {
    const number = Number(value);
    const fits = /^[+-]?(0|[1-9]\d*)$/.test(value) && Number.isSafeInteger(number);
    return fits ? number + 0 : undefined;
  };
  return build(options, {
    form: `an integer${rangeForm(options)}${clampForm(options)}`,
    schema: bounded('integer', options.clamp === true ? {} : options),
    ...ranged(options, options, read),
    fallback: asIs,
  });
}

/** A decimal number, optionally with fraction or exponent. */
export function float(options: SettingOptions<number> & Range & Clamping): Setting<number> {
  const read = (value: string): number | undefined => {
    const number = Number(value);
    const fits = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value) && Number.isFinite(number);
    return fits ? number : undefined;
  };
  return build(options, {
    form: `a number${rangeForm(options)}${clampForm(options)}`,
    schema: bounded('number', options.clamp === true ? {} : options),
    ...ranged(options, options, read),
    fallback: asIs,
  });
}

/** A TCP port; 0 lets the system pick a free one. */
export function port(options: SettingOptions<number>): Setting<number> {
  const { form, schema, parse } = int({ ...options, min: 0, max: 65535 });
  return build(options, { form: form.replace('an integer', 'a TCP port'), schema, parse, fallback: asIs });
}

/**
 * The `max` of durations used for timers: Node.js fires a timer of more than 2³¹−1 ms, 24 days, at
 * once. Leaves a margin for jitter of a tenth.
 */
export const longestTimer = '480h';

const bareDurationPattern = `^[0-9]+$|${durationPattern}`;

/**
 * A duration in Go's syntax, parsed to milliseconds. `default`, `min` (default `0`) and `max` have
 * the same syntax; use `longestTimer` as `max` for timers. With `bareSeconds`, a number without a
 * unit is seconds. With `clamp` and `zeroAs`, 0 is replaced by that value.
 */
export function duration(
  options: SettingOptions<string> & {
    readonly min?: string;
    readonly max?: string;
    readonly bareSeconds?: boolean;
    readonly zeroAs?: string;
  } & Clamping,
): Setting<Millis> {
  const range: Range = {
    min: definedDuration(options.min ?? '0', options.env),
    ...(options.max === undefined ? {} : { max: definedDuration(options.max, options.env) }),
  };
  const bounds =
    options.min === undefined && options.max === undefined ? '' : rangeForm(range, formatDuration);
  const bare = options.bareSeconds === true;
  const { clamp = false, zeroAs } = options;
  const zeroForm = zeroAs === undefined ? '' : `, 0 as ${zeroAs}`;
  const read = (value: string): Millis | undefined => {
    const ms = parseDuration(bare && /^\d+$/.test(value) ? `${value}s` : value);
    // Negative is a mistake, not a value that is too short.
    return ms !== undefined && ms < 0 ? undefined : ms;
  };
  return build(options, {
    form: `${bare ? 'seconds, or ' : ''}a duration such as 10ms, 1.5s or 1h30m${bounds}${clampForm(options)}${zeroForm}`,
    schema: { type: 'string', pattern: bare ? bareDurationPattern : durationPattern },
    ...ranged(
      range,
      { clamp, ...(zeroAs !== undefined && { zeroAs: definedDuration(zeroAs, options.env) }) },
      read,
      formatDuration,
    ),
    fallback: (value) => ({ value: definedDuration(value, options.env), text: value }),
  });
}

function definedDuration(value: string, env: string): Millis {
  const ms = parseDuration(value);
  if (ms === undefined) throw new TypeError(`setting ${env} is defined with an invalid duration: ${value}`);
  return ms;
}

/**
 * A comma-separated list. Items are trimmed, empty ones dropped; an empty text is the empty list. A
 * text of commas alone is a mistake: the empty list may switch a protection off.
 */
export function list(options: SettingOptions<readonly string[]>): Setting<readonly string[]> {
  return build(options, {
    form: 'a comma-separated list',
    schema: { type: 'string' },
    parse: (value) => {
      const items = splitItems(value).filter((item) => item !== '');
      const isMistake = items.length === 0 && (options.required === true || value.trim() !== '');
      return isMistake ? undefined : Object.freeze(items);
    },
    fallback: (value) => ({ value: Object.freeze([...value]), text: value.join(',') }),
  });
}

/**
 * Comma-separated pairs, `k:v,k:v`, split at the first separator of each; the last of equal keys
 * wins.
 */
export function pairs(
  options: SettingOptions<Readonly<Record<string, string>>> & { readonly separator?: ':' | '=' },
): Setting<Readonly<Record<string, string>>> {
  const separator = options.separator ?? ':';
  return build(options, {
    form: `comma-separated pairs, k1${separator}v1,k2${separator}v2`,
    schema: { type: 'string' },
    parse: (value) => parsePairs(value, separator),
    fallback: (value) => ({
      value: Object.freeze({ ...value }),
      text: Object.entries(value)
        .map(([key, item]) => `${key}${separator}${item}`)
        .join(','),
    }),
  });
}

function parsePairs(value: string, separator: string): Readonly<Record<string, string>> | undefined {
  if (value.trim() === '') return Object.freeze({});
  const entries: [string, string][] = [];
  for (const item of splitItems(value)) {
    const at = item.indexOf(separator);
    const key = item.slice(0, Math.max(at, 0)).trim();
    if (key === '') return undefined;
    entries.push([key, item.slice(at + 1).trim()]);
  }
  return Object.freeze(Object.fromEntries(entries));
}

function splitItems(value: string): string[] {
  return value.split(',').map((item) => item.trim());
}

/**
 * One of a few words, in any case; the value is the word as spelled in `values`. `synonyms` are
 * alternative words; an empty key there is the meaning of an empty text, which is an error
 * otherwise.
 */
export function oneOf<const V extends string>(
  values: readonly V[],
  options: SettingOptions<NoInfer<V>> & {
    readonly synonyms?: Readonly<Record<string, NoInfer<V>>>;
  },
): Setting<V> {
  const words = new Map<string, V>(
    [...values.map((value) => [value, value] as const), ...Object.entries<V>(options.synonyms ?? {})].map(
      ([word, value]) => [word.toLowerCase(), value],
    ),
  );
  return build(options, {
    form: `one of ${values.join(', ')}`,
    // An empty text is valid only as a synonym.
    schema: { type: 'string', enum: [...new Set([...values, ...Object.keys(options.synonyms ?? {})])] },
    parse: (value) => words.get(value.toLowerCase()),
    fallback: asIs,
  });
}
