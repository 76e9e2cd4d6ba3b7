/** It has no user information, as URLs of requests have none. */
const httpUrl = /^https?:\/\/[^\s\\@/?#]+(?:[/?#][^\s\\]*)?$/i;
/** Characters whose encoded and plain forms are the same. @see RFC 3986 §2.3 */
const unreserved = /^[\w.~-]$/;

/**
 * The form in which URLs of requests are compared: without query and fragment, and normalized.
 * Undefined for other texts.
 *
 * @see RFC 9449 §4.3, RFC 3986 §6.2.2 and §6.2.3
 */
export function normalizeUrl(text: string): string | undefined {
  const url = httpUrl.test(text) ? URL.parse(text) : null;
  if (url === null) return undefined;
  return `${url.origin}${url.pathname.replaceAll(/%[\da-f]{2}/gi, normalizeEscape)}`;
}

function normalizeEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return unreserved.test(character) ? character : escaped.toUpperCase();
}
