/** How a secret may be named in text: as a key of JSON, or before `=` as in forms and URLs. */
type NameSyntax = 'json' | 'form';

/** What masking text needs. */
export type MaskOptions = {
  readonly label: string;
  /** Longer names are not looked at. */
  readonly maxNameLength: number;
  readonly isSecretName: (name: string, syntax: NameSyntax) => boolean;
};

/**
 * Masks what looks like a named secret in text of no known structure, such as JSON that was cut short or a page: `"name": value` and
 * `name=value`. Every character is looked at a bounded number of times, whatever the text: a server must not be able to stall us by
 * what it answers.
 */
export function maskText(text: string, options: MaskOptions): string {
  let masked = '';
  let copiedTo = 0;
  let at = 0;
  while (at < text.length) {
    const found = text.charCodeAt(at) === QUOTE ? readKey(text, at, options) : readWord(text, at, options);
    if (found.valueAt !== undefined) {
      const isQuoted = found.syntax === 'json';
      const end = isQuoted ? endOfJsonValue(text, found.valueAt) : endOfFormValue(text, found.valueAt);
      if (end > found.valueAt) {
        masked += text.slice(copiedTo, found.valueAt) + (isQuoted ? `"${options.label}"` : options.label);
        copiedTo = end;
        at = end;
        continue;
      }
    }
    at = found.next;
  }
  return masked + text.slice(copiedTo);
}

/** Where to go on, and where the value of a secret begins. */
type Found = {
  readonly next: number;
  readonly syntax?: NameSyntax;
  readonly valueAt?: number | undefined;
};

/** A quoted key, with the colon behind it. */
function readKey(text: string, at: number, { maxNameLength, isSecretName }: MaskOptions): Found {
  const start = at + 1;
  let end = start;
  while (end - start <= maxNameLength && isKeyUnit(text.charCodeAt(end))) end += 1;
  if (end === start || text.charCodeAt(end) !== QUOTE) return { next: start };
  const colon = skipBlanks(text, end + 1);
  // A text that is no key may hold `name=value`, so that it is read again.
  if (text.charCodeAt(colon) !== COLON) return { next: start };
  const valueAt = skipBlanks(text, colon + 1);
  if (!isSecretName(text.slice(start, end), 'json')) return { next: valueAt };
  return { next: valueAt, syntax: 'json', valueAt };
}

/** A run of letters, digits, `_`, `-` and `.`, or one other character. After a dot a new name may begin: `user.password=`. */
function readWord(text: string, at: number, { maxNameLength, isSecretName }: MaskOptions): Found {
  let start = at;
  let end = at;
  for (; isWordUnit(text.charCodeAt(end)); end += 1) if (text.charCodeAt(end) === DOT) start = end + 1;
  if (end === at) return { next: at + 1 };
  if (text.charCodeAt(end) !== EQUALS || end - start > maxNameLength) return { next: end };
  if (!isSecretName(text.slice(start, end), 'form')) return { next: end + 1 };
  return { next: end + 1, syntax: 'form', valueAt: end + 1 };
}

/** To the closing quote, or the end of what is there; without quotes to a blank, comma or bracket. */
function endOfJsonValue(text: string, at: number): number {
  let end = at;
  if (text.charCodeAt(at) !== QUOTE) {
    while (end < text.length && !isJsonEnd(text.charCodeAt(end))) end += 1;
    return end;
  }
  for (end += 1; end < text.length; end += 1) {
    const unit = text.charCodeAt(end);
    if (unit === QUOTE) return end + 1;
    if (unit === BACKSLASH) end += 1;
  }
  return text.length;
}

function endOfFormValue(text: string, at: number): number {
  let end = at;
  while (end < text.length && !isFormEnd(text.charCodeAt(end))) end += 1;
  return end;
}

function skipBlanks(text: string, at: number): number {
  let end = at;
  while (isBlank(text.charCodeAt(end))) end += 1;
  return end;
}

const QUOTE = 34;
const AMPERSAND = 38;
const APOSTROPHE = 39;
const COMMA = 44;
const DASH = 45;
const DOT = 46;
const COLON = 58;
const LESS = 60;
const EQUALS = 61;
const GREATER = 62;
const BACKSLASH = 92;
const BRACKET_END = 93;
const UNDERSCORE = 95;
const BRACE_END = 125;

/** What `charCodeAt` gives beyond the end is not a number, of which all of these are false. */
function isWordUnit(unit: number): boolean {
  const isLetter = (unit >= 65 && unit <= 90) || (unit >= 97 && unit <= 122);
  return isLetter || (unit >= 48 && unit <= 57) || unit === UNDERSCORE || unit === DASH || unit === DOT;
}

function isKeyUnit(unit: number): boolean {
  return unit >= 32 && unit !== QUOTE && unit !== BACKSLASH;
}

function isBlank(unit: number): boolean {
  return unit === 32 || (unit >= 9 && unit <= 13);
}

function isJsonEnd(unit: number): boolean {
  return isBlank(unit) || unit === COMMA || unit === BRACKET_END || unit === BRACE_END;
}

function isFormEnd(unit: number): boolean {
  const isMark = unit === AMPERSAND || unit === QUOTE || unit === APOSTROPHE;
  return isBlank(unit) || isMark || unit === LESS || unit === GREATER;
}
