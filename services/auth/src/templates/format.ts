import { ExecutionError, getMember, isList, isMap, sortedKeys, typeName, type Value } from './syntax.ts';

interface Flags {
  readonly minus: boolean;
  readonly plus: boolean;
  readonly sharp: boolean;
  readonly space: boolean;
  readonly zero: boolean;
  readonly width: number | undefined;
  readonly precision: number | undefined;
}

const noFlags: Flags = {
  minus: false,
  plus: false,
  sharp: false,
  space: false,
  zero: false,
  width: undefined,
  precision: undefined,
};

/** Bounds the memory of padded fields. */
const maxWidth = 1_000;

/** Formats a value like `%v`. */
function formatDefault(value: Value): string {
  return formatValue(value, 'v', noFlags);
}

/** Go's fmt.Sprint: adds spaces between operands when neither is a string. */
export function printAll(values: readonly Value[]): string {
  let text = '';
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    if (index > 0 && typeof value !== 'string' && typeof before !== 'string') text += ' ';
    text += formatDefault(value);
  }
  return text;
}

const directive = /%([-+# 0]*)(\*|\d+)?(?:\.(\*|\d*))?([\s\S]?)/gu;

/** Go's fmt.Sprintf, which writes mistakes into the result. */
export function printf(format: string, args: readonly Value[]): string {
  let used = 0;
  const next = (): Value => args[used++];
  const star = (): number => {
    const size = next();
    return typeof size === 'bigint' ? Number(size) : 0;
  };
  const text = format.replaceAll(directive, (_all, flags: string, width, precision, verb: string) => {
    if (verb === '%') return '%';
    if (verb === '') return '%!(NOVERB)';
    const wanted = width === '*' ? star() : width === undefined ? undefined : Number(width);
    const size = precision === '*' ? star() : precision === undefined ? undefined : Number(precision || 0);
    for (const bound of [wanted, size])
      if (bound !== undefined && Math.abs(bound) > maxWidth)
        throw new ExecutionError(`printf: a width of ${bound} is more than ${maxWidth}`);
    if (used >= args.length) return `%!${verb}(MISSING)`;
    const minus = flags.includes('-') || (wanted ?? 0) < 0;
    return formatValue(next(), verb, {
      minus,
      plus: flags.includes('+') && verb !== 'v',
      sharp: flags.includes('#'),
      space: flags.includes(' '),
      zero: flags.includes('0') && !minus,
      width: wanted === undefined ? undefined : Math.abs(wanted),
      precision: size === undefined || size < 0 ? undefined : size,
    });
  });
  if (used >= args.length) return text;
  const extra = args.slice(used).map((arg) => {
    return arg === undefined || arg === null ? '<nil>' : `${typeName(arg)}=${formatDefault(arg)}`;
  });
  return `${text}%!(EXTRA ${extra.join(', ')})`;
}

function formatValue(value: Value, verb: string, flags: Flags): string {
  if (verb === 'T') return pad(typeName(value), flags);
  if (value === undefined || value === null) return verb === 'v' ? pad('<nil>', flags) : `%!${verb}(<nil>)`;
  if (isList(value)) return `[${value.map((item) => formatMember(item, verb, flags)).join(' ')}]`;
  if (isMap(value)) {
    const entries = sortedKeys(value).map((key) => {
      return `${formatMember(key, verb, flags)}:${formatMember(getMember(value, key), verb, flags)}`;
    });
    return `map[${entries.join(' ')}]`;
  }
  return formatScalar(value, verb, flags) ?? `%!${verb}(${typeName(value)}=${formatDefault(value)})`;
}

/** In lists and maps, nil is valid for every verb. */
function formatMember(value: Value, verb: string, flags: Flags): string {
  return value === null ? pad('<nil>', flags) : formatValue(value, verb, flags);
}

/** Undefined for an invalid verb. */
function formatScalar(
  value: string | boolean | number | bigint,
  verb: string,
  flags: Flags,
): string | undefined {
  switch (typeof value) {
    case 'string':
      return formatString(value, verb, flags);
    case 'boolean':
      return verb === 't' || verb === 'v' ? pad(String(value), flags) : undefined;
    case 'bigint':
      return formatInt(value, verb, flags);
    default:
      return formatFloat(value, verb, flags);
  }
}

function formatString(value: string, verb: string, flags: Flags): string | undefined {
  const { precision } = flags;
  const text = precision === undefined ? value : [...value].slice(0, precision).join('');
  if (verb === 's' || verb === 'v') return pad(text, flags);
  if (verb === 'q') return pad(flags.sharp && canBeRaw(text) ? `\`${text}\`` : quote(text, '"'), flags);
  if (verb !== 'x' && verb !== 'X') return undefined;
  const bytes = Buffer.from(value).subarray(0, precision);
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0'));
  const prefix = flags.sharp && hex.length > 0 ? '0x' : '';
  const shown = flags.space ? hex.map((byte) => prefix + byte).join(' ') : prefix + hex.join('');
  return pad(verb === 'x' ? shown : shown.toUpperCase(), flags);
}

function canBeRaw(text: string): boolean {
  return !/[`\p{Cc}\uFEFF]/u.test(text.replaceAll('\t', ''));
}

const letters: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
};

function quote(text: string, mark: string): string {
  const escaped = text.replaceAll(/[\p{C}\p{Z}\\"']/gu, (char) => {
    if (char === mark) return `\\${char}`;
    if (char === ' ' || char === '"' || char === "'") return char;
    const code = char.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    if (letters[char] !== undefined) return letters[char];
    if (code < 0x80) return `\\x${hex.padStart(2, '0')}`;
    return code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`;
  });
  return mark + escaped + mark;
}

const radices: Readonly<Record<string, { radix: number; prefix: string }>> = {
  b: { radix: 2, prefix: '0b' },
  o: { radix: 8, prefix: '0' },
  O: { radix: 8, prefix: '' },
  x: { radix: 16, prefix: '0x' },
  X: { radix: 16, prefix: '0X' },
  d: { radix: 10, prefix: '' },
  v: { radix: 10, prefix: '' },
};

function formatInt(value: bigint, verb: string, flags: Flags): string | undefined {
  if (verb === 'c' || verb === 'q' || verb === 'U') return formatRune(value, verb, flags);
  const base = radices[verb];
  if (base === undefined) return undefined;
  const magnitude = (value < 0n ? -value : value).toString(base.radix);
  let digits = verb === 'X' ? magnitude.toUpperCase() : magnitude;
  if (flags.precision === 0 && value === 0n) return pad('', { ...flags, zero: false });
  digits = digits.padStart(flags.precision ?? 0, '0');
  const prefix = verb === 'O' ? '0o' : flags.sharp ? base.prefix : '';
  const sign = getSign(value < 0n, flags);
  const isZeroPadded = flags.zero && flags.precision === undefined && flags.width !== undefined;
  if (isZeroPadded) digits = digits.padStart((flags.width ?? 0) - sign.length, '0');
  return pad(sign + prefix + digits, { ...flags, zero: false });
}

function formatRune(value: bigint, verb: string, flags: Flags): string {
  const isValid = value >= 0n && value <= 0x10ffffn && !(value >= 0xd800n && value < 0xe000n);
  const char = isValid ? String.fromCodePoint(Number(value)) : '\uFFFD';
  if (verb === 'c') return pad(char, flags);
  if (verb === 'q') return pad(quote(char, "'"), flags);
  return pad(`U+${value.toString(16).toUpperCase().padStart(4, '0')}`, flags);
}

function getSign(isNegative: boolean, { plus, space }: Flags): string {
  if (isNegative) return '-';
  return plus ? '+' : space ? ' ' : '';
}

function formatFloat(value: number, verb: string, flags: Flags): string | undefined {
  const digits = verb === 'V' ? undefined : floatDigits(Math.abs(value), verb.toLowerCase(), flags.precision);
  if (digits === undefined) return undefined;
  const sign = getSign(value < 0 || Object.is(value, -0), flags);
  const shown = 'EG'.includes(verb) ? digits.toUpperCase() : digits;
  if (!flags.zero || flags.width === undefined) return pad(sign + shown, flags);
  return sign + shown.padStart(flags.width - sign.length, '0');
}

function floatDigits(value: number, verb: string, precision: number | undefined): string | undefined {
  switch (verb) {
    case 'f':
      return value.toFixed(Math.min(precision ?? 6, 100));
    case 'e':
      return exponential(value, Math.min(precision ?? 6, 100));
    case 'g':
    case 'v':
      return general(value, precision);
    default:
      return undefined;
  }
}

/** Go writes at least two digits of an exponent. */
function exponential(value: number, fraction?: number): string {
  return value.toExponential(fraction).replace(/e([+-])(\d)$/, 'e$10$2');
}

/**
 * `%g`: shortest exact digits, or `precision` digits; with an exponent for large and small numbers.
 */
function general(value: number, precision: number | undefined): string {
  const wanted = precision === undefined ? undefined : Math.min(Math.max(precision, 1), 100);
  const [mantissa = '', exponentText = '0'] = (
    wanted === undefined ? value.toExponential() : value.toExponential(wanted - 1)
  ).split('e');
  const exponent = Number(exponentText);
  const digits = mantissa.replace('.', '').replace(/0+$/, '') || '0';
  const limit = wanted === undefined ? shortestLimit : Math.max(digits.length, wanted);
  if (exponent < -4 || exponent >= limit) return exponential(value, digits.length - 1);
  const fraction = Math.max(digits.length - 1 - exponent, 0);
  return value.toFixed(Math.min(fraction, 100));
}

/** Smallest exponent that the shortest form of a number prints. */
const shortestLimit = 6;

function pad(text: string, { width, minus, zero }: Flags): string {
  if (width === undefined) return text;
  const missing = width - [...text].length;
  if (missing <= 0) return text;
  if (minus) return text + ' '.repeat(missing);
  return (zero ? '0' : ' ').repeat(missing) + text;
}
