/**
 * Escapes control characters, which forge log lines and control terminals, and marks that change
 * the direction of text (`\u001b`), and cuts text that is longer than `maxLength`.
 */
export function printable(text: string, maxLength: number): string {
  return cut(text, maxLength).replace(unprintable, escaped);
}

/** Makes text of several lines printable. */
export function printableLines(text: string, maxLength: number): string {
  return cut(text, maxLength).replace(unprintableButNewline, escaped);
}

/**
 * C0 and C1 controls, DEL, line and paragraph separator, bidirectional controls, and halves of
 * surrogate pairs.
 */
const unprintable = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
const unprintableButNewline = /(?!\n)[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

function cut(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Enough to recognise a value, too few to flood a log. */
const MAXIMUM_LENGTH = 200;

/**
 * Quotes an untrusted value for a message: as JSON, so that control characters are escaped, and
 * cut.
 */
export function quote(value: unknown): string {
  const text = value === undefined ? 'undefined' : JSON.stringify(value);
  return text.length > MAXIMUM_LENGTH ? `${text.slice(0, MAXIMUM_LENGTH)}…` : text;
}

/** The message of anything that was thrown; some objects cannot be converted to text. */
export function errorMessage(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown);
  } catch {
    return typeof thrown;
  }
}
