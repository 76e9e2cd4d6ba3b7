export const maxUriChars = 2048;

/** Schemes that browsers execute or display. */
const forbiddenSchemes: readonly string[] = ['javascript:', 'data:', 'file:', 'vbscript:', 'about:', 'blob:'];
const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** @see RFC 8252 §7 https://www.rfc-editor.org/rfc/rfc8252#section-7 */
export function findRedirectUriProblem(uri: string): string | undefined {
  // URL parsers drop or encode others, with which a URI is no value of a header.
  if (!isVisibleAscii(uri))
    return 'it has a character that is not visible ASCII: such characters have to be percent-encoded';
  const url = URL.parse(uri);
  if (url === null || uri.length > maxUriChars) return 'it is not an absolute URI';
  // The table separates URIs by commas.
  if (/[,#]/.test(uri)) return 'it has a fragment or a comma';
  if (forbiddenSchemes.includes(url.protocol)) return `the scheme ${url.protocol} is not allowed`;
  return url.protocol === 'http:' && !loopbackHosts.includes(url.hostname)
    ? 'http is only allowed for localhost'
    : undefined;
}

/** Whether a URI can be the value of a header. @see RFC 3986 §2 */
export function isVisibleAscii(uri: string): boolean {
  return /^[!-~]+$/.test(uri);
}

export function isWebUri(text: string): boolean {
  return text.length <= maxUriChars && /^https?:\/\/[^\s/]/i.test(text) && URL.canParse(text);
}
