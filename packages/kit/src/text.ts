/** Orders texts by code unit, independent of the locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * Hides the user and password of every URL in a text: `redis://u:p@host` becomes
 * `redis://***@host`. Masks `user:password@host` without a scheme as well. Prefers masking too much
 * to masking too little. Runs in linear time.
 */
export function maskUrl(text: string): string {
  if (!text.includes('@')) return text;
  return isBareCredentials(text) ? maskUpToAt(text, 0) : text.replace(/\S+/g, maskWord);
}

/**
 * Hides what follows the origin of a URL: the paths of webhooks have tokens. A path alone, which
 * belongs to another URL, loses its query. Any other text is hidden.
 */
export function maskPath(text: string): string {
  if (text === '') return '';
  if (/^\/(?![/\\])/.test(text)) return text.replace(/[?#].*$/s, '?***');
  const url = URL.parse(text);
  if (url === null) return '***';
  const { protocol, origin } = url;
  // Schemes without an origin name no host.
  if (origin === 'null') return `${protocol}//***`;
  return url.href === `${origin}/` ? origin : `${origin}/***`;
}

// Up to the last `@` of the word: an unescaped `@`, `/` or `,` in a password must not expose the
// rest of it. Three slashes mean that there is no authority (`file:///…/@scope/…` in a stack).
function maskWord(word: string): string {
  const scheme = word.search(/:\/\/(?!\/)/);
  return scheme < 0 ? word : maskUpToAt(word, scheme + '://'.length);
}

function maskUpToAt(word: string, from: number): string {
  const at = word.lastIndexOf('@');
  return at < from ? word : `${word.slice(0, from)}***${word.slice(at)}`;
}

function isBareCredentials(text: string): boolean {
  const colon = text.indexOf(':');
  const slash = text.indexOf('/');
  return colon >= 0 && (slash < 0 || slash > colon) && !text.startsWith('//', colon + 1) && !/\s/.test(text);
}

/** Formats `host:port`, with brackets around an IPv6 address (RFC 3986 §3.2.2). */
export function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`;
}

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** @see RFC 9562 §4 https://www.rfc-editor.org/rfc/rfc9562#section-4 */
export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}
