import { unsafeValue } from './escape-html.ts';

/** Escapes a value within quotes of CSS. */
export function escapeCssString(text: string): string {
  return text.replaceAll(
    /([\0\t\n\f\r"&'()+/:;<>{}])|\\/g,
    (char, special: string | undefined, at: number) => {
      if (special === undefined) return '\\\\';
      const next = text.charAt(at + 1);
      // A hexadecimal digit after the escape would belong to it.
      const space = at + 1 === text.length || /[\da-fA-F\t\n\f\r ]/.test(next) ? ' ' : '';
      return `\\${char.charCodeAt(0).toString(16)}${space}`;
    },
  );
}

/** Lets through what cannot begin another property, a URL or code. */
export function filterCssValue(text: string): string {
  const value = decodeCss(text);
  const words = value
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '')
    .replaceAll('-', '');
  const isUnsafe =
    /[\0"'()/;@[\\\]`{}<>]|--/.test(value) || words.includes('expression') || words.includes('mozbinding');
  return isUnsafe ? unsafeValue : value;
}

const cssEscape = /\\(?:([\da-fA-F]{1,6})(?:\r\n|[ \t\n\f\r])?|([\s\S]))/g;

/** Replaces the escapes of CSS by what they stand for. */
export function decodeCss(text: string): string {
  return text.replaceAll(cssEscape, (_all, hex: string | undefined, char: string) => {
    if (hex === undefined) return char;
    const code = Number.parseInt(hex, 16);
    return String.fromCodePoint(code > 0x10ffff ? 0xfffd : code);
  });
}
