/** The segments of a path, in canonical form. */
export interface PathSegments {
  /** Escapes of characters that need none are decoded; other escapes are in upper case. */
  readonly segments: readonly string[];
  /** `/docs/` has one, `/` and `/docs` have none. */
  readonly hasTrailingSlash: boolean;
}

/** A request path with a single interpretation. */
interface RequestPath {
  /** Undefined for `OPTIONS *`, which addresses no resource. */
  readonly own: PathSegments | undefined;
  /**
   * How other servers may read the path: without path parameters (servers on the JVM drop them
   * from `/orders;v=1`), or only up to an encoded `?` or `#` (servers that decode first). Usually
   * empty. A request is rejected if one of them matches another rule.
   */
  readonly alternatives: readonly PathSegments[];
}

export type ParsedRequestPath =
  | { readonly ok: true; readonly path: RequestPath }
  | { readonly ok: false; readonly reason: string };

const visibleAscii = /^[!-~]*$/;
const anyEscape = /%[0-9a-f]{2}/i;
const escapedSeparator = /%(?:2f|5c)/i;
const controlCharacter = /\p{Cc}/u;
/** An encoded `?` or `#` in a canonical segment. */
const escapedDelimiter = /%(?:3F|23)/;
/**
 * Escapes, and characters that RFC 3986 §3.3 (`pchar`) does not allow in a segment, except the
 * slash.
 */
const escapeOrInvalid = /%[0-9a-f]{2}|[^\w.~!$&'()*+,;=:@/%-]/gi;
const segmentCharacter = /^[\w.~!$&'()*+,;=:@-]$/;

/**
 * Parses the path of a request target. Paths that a proxy, a framework or an upstream might
 * interpret differently are rejected instead of normalized: the path that is authorized must be
 * the path that is served.
 *
 * @see RFC 3986 §6.2.2 https://www.rfc-editor.org/rfc/rfc3986#section-6.2.2
 */
export function parseRequestPath(method: string, target: string): ParsedRequestPath {
  const queryStart = target.indexOf('?');
  const path = queryStart === -1 ? target : target.slice(0, queryStart);
  if (path === '*' && method === 'OPTIONS') return { ok: true, path: { own: undefined, alternatives: [] } };
  const reason = findProblem(path);
  if (reason !== undefined) return { ok: false, reason };
  const segments = path.replace(escapeOrInvalid, canonicalize).split('/').slice(1);
  const hasTrailingSlash = segments.at(-1) === '';
  if (hasTrailingSlash) segments.pop();
  const own = { segments, hasTrailingSlash: hasTrailingSlash && segments.length > 0 };
  if (!hasSeparateReadings.test(path)) {
    const problem = findSegmentProblem(segments);
    return problem === undefined ? { ok: true, path: { own, alternatives: [] } } : reject(problem);
  }
  const plain = segments.map(withoutParameters);
  const hasParameters = plain.some((segment, index) => segment !== segments[index]);
  const complete = hasParameters ? [own, { ...own, segments: plain }] : [own];
  const truncated = segments.some((segment) => escapedDelimiter.test(segment))
    ? complete.map((reading) => untilDelimiter(reading.segments))
    : [];
  const problem =
    findSegmentProblem(plain) ?? truncated.map((reading) => findDotSegment(reading.segments)).find(Boolean);
  if (problem !== undefined) return reject(problem);
  return { ok: true, path: { own, alternatives: [...complete.slice(1), ...truncated] } };
}

const canonicalPath = /^[\w.~!$&'()*+,;=:@/-]*$/;

/** The segments of a path as it was sent; undefined if they are those of its canonical form. */
export function readLiterally(target: string, { segments: own }: PathSegments): PathSegments | undefined {
  const [path = ''] = target.split('?', 1);
  if (canonicalPath.test(path)) return undefined;
  const segments = path.split('/').slice(1);
  const hasTrailingSlash = segments.at(-1) === '' && segments.length > 1;
  if (segments.at(-1) === '') segments.pop();
  if (segments.every((segment, index) => segment === own[index])) return undefined;
  return { segments, hasTrailingSlash };
}

/** Path parameters, also with an encoded `;`, and an encoded `?` or `#`. */
const hasSeparateReadings = /;|%(?:3b|3f|23)/i;

function findSegmentProblem(segments: readonly string[]): string | undefined {
  return segments.includes('') ? 'it has an empty segment (//)' : findDotSegment(segments);
}

function findDotSegment(segments: readonly string[]): string | undefined {
  return segments.some(isDotSegment) ? 'it has a dot segment' : undefined;
}

function findProblem(path: string): string | undefined {
  if (!path.startsWith('/')) return 'it does not start with a slash';
  if (!visibleAscii.test(path)) return 'it has characters that must be percent-encoded';
  if (path.includes('#')) return 'it has a fragment (#)';
  if (path.includes('\\')) return 'it has a backslash';
  return path.includes('%') ? findEscapeProblem(path) : undefined;
}

function findEscapeProblem(path: string): string | undefined {
  const decoded = decode(path);
  if (decoded === undefined) return 'its percent-encoding is not valid UTF-8';
  if (controlCharacter.test(decoded)) return 'it has an encoded control character';
  if (escapedSeparator.test(path)) return 'it has an encoded slash or backslash';
  return anyEscape.test(decoded) ? 'it is percent-encoded twice' : undefined;
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** The canonical form of an escape or an invalid character. */
function canonicalize(found: string): string {
  if (found.length === 1) return `%${found.charCodeAt(0).toString(16).toUpperCase()}`;
  const character = String.fromCharCode(Number.parseInt(found.slice(1), 16));
  return segmentCharacter.test(character) ? character : found.toUpperCase();
}

function withoutParameters(segment: string): string {
  const start = segment.indexOf(';');
  return start === -1 ? segment : segment.slice(0, start);
}

/** The path before an encoded `?` or `#`. */
function untilDelimiter(segments: readonly string[]): PathSegments {
  const index = segments.findIndex((segment) => escapedDelimiter.test(segment));
  const [last = ''] = segments[index]?.split(escapedDelimiter, 1) ?? [];
  const before = segments.slice(0, index);
  if (last === '') return { segments: before, hasTrailingSlash: before.length > 0 };
  return { segments: [...before, last], hasTrailingSlash: false };
}

function isDotSegment(segment: string): boolean {
  return segment === '.' || segment === '..';
}

function reject(reason: string): ParsedRequestPath {
  return { ok: false, reason };
}
