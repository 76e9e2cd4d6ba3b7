const kib = 1024;

/** Largest bodies in bytes, by what a route takes. Parsing blocks the event loop, and most callers are not authenticated yet. */
export const bodyLimits = {
  /** No body, or a few ids, codes and names. The default of all routes. */
  small: 4 * kib,
  /** A contact with a CAPTCHA token, or a code with a password and a `redirect_to`. */
  contact: 16 * kib,
  /** 4 KiB of `user_metadata`, of which each byte may be escaped with six, beside a contact and a password. */
  metadata: 32 * kib,
  /** An ID token and an access token of a provider, or a signed message of 20 KiB. */
  token: 32 * kib,
  /** Metadata of both kinds and a password hash; read after the token of the administrator has been verified. */
  admin: 64 * kib,
} as const;

/** Metadata are not nested deeper. */
const maxDepth = 64;
/** Metadata of both kinds, 6 KiB, do not hold more of the shortest members, such as `"a":1,`. */
const maxMembers = 1024;
/** Nor more of the shortest items of a list, such as `1,`. */
const maxItems = 3 * 1024;
/** Fields of a form. No grant has a dozen. */
const maxFields = 64;

/**
 * Checks the shape of JSON before it is parsed, in one pass that allocates nothing. What is no JSON is left to the parser.
 *
 * @returns why the text is not parsed, undefined when it may be.
 */
export function jsonShapeProblem(text: string): string | undefined {
  let depth = 0;
  let members = 0;
  let items = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at + 1);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case 0x3a: // :
        if (++members > maxMembers) return `it has more than ${maxMembers} members`;
        break;
      case 0x2c: // ,
        if (++items > maxItems) return `it has more than ${maxItems} members and list items`;
        break;
    }
  }
  return undefined;
}

/** Index of the quotation mark that ends a string, or of the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 0x22) return at;
    // A backslash: what follows belongs to the escape.
    if (character === 0x5c) at++;
  }
  return text.length;
}

/** Why a form is not parsed, undefined when it may be. */
export function formShapeProblem(text: string): string | undefined {
  let fields = 1;
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1))
    if (++fields > maxFields) return `the form has more than ${maxFields} fields`;
  return undefined;
}
