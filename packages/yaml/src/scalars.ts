/** Types that YAML 1.1 gives to a plain scalar, as Go programs decode it into an untyped value. */
export type ScalarType = 'null' | 'bool' | 'int' | 'bigInt' | 'float' | 'text';

const nullTexts: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL']);

const boolTexts: ReadonlyMap<string, boolean> = new Map([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON', 'true', 'True', 'TRUE'].map((t) => [t, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF', 'false', 'False', 'FALSE'].map(
    (t) => [t, false] as const,
  ),
]);

const specialFloats: ReadonlyMap<string, number> = new Map([
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((t) => [t, Infinity] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((t) => [t, -Infinity] as const),
  ...['.nan', '.NaN', '.NAN'].map((t) => [t, NaN] as const),
]);

const floatPattern = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const intPattern = /^([-+]?)(?:0x([0-9a-fA-F]+)|0b([01]+)|0o?([0-7]+)|(0|[1-9][0-9]*))$/;

/**
 * Type of a plain scalar's text. Numbers may be grouped by underscores; sexagesimal ones and dates
 * are text.
 */
export function scalarType(text: string): ScalarType {
  if (nullTexts.has(text)) return 'null';
  if (boolTexts.has(text)) return 'bool';
  if (!startsLikeNumber(text)) return 'text';
  const integer = parseInteger(text);
  if (integer !== undefined) return isInt64(integer, text) ? 'int' : 'bigInt';
  return parseFloatText(text) === undefined ? 'text' : 'float';
}

/** Whether a plain scalar is null: nothing, `~` or `null`. */
export const isNullText = (text: string): boolean => nullTexts.has(text);

/** Value of a YAML 1.1 boolean (`yes`, `off`, `True`, …), or undefined. */
export const parseBoolean = (text: string): boolean | undefined => boolTexts.get(text);

/**
 * Value of a whole number: decimal, `0x`, `0b`, `0o` or a leading 0 for octal; exact up to 2^53.
 * Else undefined.
 */
export function parseInteger(text: string): number | undefined {
  const match = intPattern.exec(text.replaceAll('_', ''));
  if (match === null) return undefined;
  const [, sign, hex, binary, octal, decimal] = match;
  const magnitude =
    decimal !== undefined
      ? Number(decimal)
      : hex !== undefined
        ? Number.parseInt(hex, 16)
        : binary !== undefined
          ? Number.parseInt(binary, 2)
          : Number.parseInt(octal ?? '0', 8);
  return sign === '-' ? -magnitude : magnitude;
}

/**
 * Whether a Go `int` can hold it: −2⁶³ to 2⁶³−1. A JavaScript number cannot distinguish 2⁶³ from
 * its neighbours.
 */
function isInt64(value: number, text: string): boolean {
  const edge = 2 ** 63;
  if (Math.abs(value) !== edge) return Math.abs(value) < edge;
  const exact = BigInt(text.replaceAll(/[-+_]/g, '').replace(/^0(?=[0-7])/, '0o'));
  return exact < 2n ** 63n || (value < 0 && exact === 2n ** 63n);
}

/**
 * Value of a number with a fraction, an exponent, or too many digits for a whole one; else
 * undefined.
 */
function parseFloatText(text: string): number | undefined {
  const special = specialFloats.get(text);
  if (special !== undefined) return special;
  const plain = text.replaceAll('_', '');
  return floatPattern.test(plain) ? Number(plain) : undefined;
}

/** Cheap test that spares nearly all texts the regular expressions. */
function startsLikeNumber(text: string): boolean {
  const first = text.charCodeAt(0);
  return (first >= 48 && first <= 57) || first === 43 || first === 45 || first === 46;
}

/** Value of a plain scalar: null, boolean, number or text. */
export function parseScalar(text: string): null | boolean | number | string {
  if (isNullText(text)) return null;
  return parseBoolean(text) ?? parseInteger(text) ?? parseFloatText(text) ?? text;
}
