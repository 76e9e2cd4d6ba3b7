/** The one way in which a path can be read. */
interface RequestPath {
  /**
   * Decoded where that changes nothing: escapes of characters that may stand in a segment are resolved, others are in upper case. A
   * slash at the end does not count. Undefined for `*`, which asks about the server and names no resource.
   */
  readonly segments: readonly string[] | undefined;
  /**
   * What some servers make of it, and others do not: without the parameters of segments, as those on the JVM read `/orders;v=1`; up to an
   * encoded `?` or `#`, which ends a path that is decoded before it is taken apart. Mostly none. What decides differently on one of these
   * is refused.
   */
  readonly otherReadings: readonly (readonly string[])[];
}

/** A path, or why it is not to be believed. */
export type ReadPath =
  | { readonly ok: true; readonly path: RequestPath }
  | { readonly ok: false; readonly reason: string };

const visibleAscii = /^[!-~]*$/;
const anEscape = /%[0-9a-f]{2}/i;
const escapedSeparator = /%(?:2f|5c)/i;
const controlCharacter = /\p{Cc}/u;
/** Of `?` and `#`, as they stand in a segment. */
const escapedEnd = /%(?:3F|23)/;
/** Escapes, and what is none of the characters that a segment may have (RFC 3986 §3.3, `pchar`), nor a slash. */
const escapeOrStranger = /%[0-9a-f]{2}|[^\w.~!$&'()*+,;=:@/%-]/gi;
const segmentCharacter = /^[\w.~!$&'()*+,;=:@-]$/;

/**
 * Reads a path as it was sent. Whatever a proxy, a framework or an upstream might take for another path is refused and not resolved:
 * the request that is decided on must be the one that is served.
 *
 * @see RFC 3986 §6.2.2 https://www.rfc-editor.org/rfc/rfc3986#section-6.2.2
 */
export function readRequestPath(method: string, target: string): ReadPath {
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  if (path === '*' && method === 'OPTIONS')
    return { ok: true, path: { segments: undefined, otherReadings: [] } };
  const reason = problemOf(path);
  if (reason !== undefined) return { ok: false, reason };
  const segments = path.replace(escapeOrStranger, canonicalCharacter).split('/').slice(1);
  // A slash at the end: `/` itself has no segment, `/docs/` has one.
  if (segments.at(-1) === '') segments.pop();
  const plain = segments.map(withoutParameters);
  if (plain.includes('')) return refuse('it has an empty segment (//)');
  const hasParameters = plain.some((segment, index) => segment !== segments[index]);
  const whole = hasParameters ? [segments, plain] : [segments];
  const ended = segments.some((segment) => escapedEnd.test(segment)) ? whole.map(upToEnd) : [];
  if ([plain, ...ended].some((reading) => reading.some(isDotSegment))) return refuse('it has a dot segment');
  return { ok: true, path: { segments, otherReadings: [...whole.slice(1), ...ended] } };
}

function problemOf(path: string): string | undefined {
  if (!path.startsWith('/')) return 'it does not begin with a slash';
  if (!visibleAscii.test(path)) return 'it has characters that must be percent-encoded';
  if (path.includes('#')) return 'it has a fragment (#)';
  if (path.includes('\\')) return 'it has a backslash';
  return path.includes('%') ? escapeProblemOf(path) : undefined;
}

function escapeProblemOf(path: string): string | undefined {
  const decoded = decode(path);
  if (decoded === undefined) return 'its percent-encoding is not that of UTF-8 text';
  if (controlCharacter.test(decoded)) return 'it has an encoded control character';
  if (escapedSeparator.test(path)) return 'it has an encoded slash or backslash';
  return anEscape.test(decoded) ? 'it is percent-encoded twice' : undefined;
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function canonicalCharacter(found: string): string {
  if (found.length === 1) return `%${found.charCodeAt(0).toString(16).toUpperCase()}`;
  const character = String.fromCharCode(Number.parseInt(found.slice(1), 16));
  return segmentCharacter.test(character) ? character : found.toUpperCase();
}

function withoutParameters(segment: string): string {
  const at = segment.indexOf(';');
  return at === -1 ? segment : segment.slice(0, at);
}

/** The segments before an encoded `?` or `#`; a slash before it does not count. */
function upToEnd(segments: readonly string[]): readonly string[] {
  const at = segments.findIndex((segment) => escapedEnd.test(segment));
  const [last = ''] = segments[at]?.split(escapedEnd, 1) ?? [];
  return last === '' ? segments.slice(0, at) : [...segments.slice(0, at), last];
}

function isDotSegment(segment: string): boolean {
  return segment === '.' || segment === '..';
}

function refuse(reason: string): ReadPath {
  return { ok: false, reason };
}
