import { readRequestPath } from './request-path.ts';

/** A set of paths: `/healthz` itself, `/docs/*` with any one segment, `/api/**` with everything below and `/api` itself. */
export interface RoutePath {
  /** As it was written. */
  readonly source: string;
  /** Undefined is any one segment. */
  readonly segments: readonly (string | undefined)[];
  /** Everything below as well (`**`). */
  readonly below: boolean;
  /** Segments are compared without regard to case, as upstreams on Windows and others do; they are folded here. */
  readonly ignoreCase: boolean;
}

/** A set of paths, or what is wrong with it. */
export type ParsedRoutePath =
  | { readonly ok: true; readonly path: RoutePath }
  | { readonly ok: false; readonly reason: string };

const notAscii = /[^\0-\x7f]+/g;

/** Reads a set of paths as a rule has it. Its segments become what `readRequestPath` makes of those of a request. */
export function parseRoutePath(source: string, { ignoreCase = false } = {}): ParsedRoutePath {
  if (!source.startsWith('/')) return refuse('a path begins with a slash');
  if (source.includes('?')) return refuse('a query never matters: leave it out');
  const written = source === '/' ? [] : source.slice(1).split('/');
  if (written.at(-1) === '') return refuse('leave out the slash at the end: requests match with and without');
  const below = written.at(-1) === '**';
  const parts = below ? written.slice(0, -1) : written;
  const segments: (string | undefined)[] = [];
  for (const part of parts) {
    const reason = segmentProblem(part);
    if (reason !== undefined) return refuse(reason);
    if (part === '*') {
      segments.push(undefined);
      continue;
    }
    // What is not ASCII is sent percent-encoded, whatever people write.
    const read = readRequestPath('GET', `/${part.toWellFormed().replace(notAscii, encodeURIComponent)}`);
    if (!read.ok) return refuse(`${part} is in no path that passes: ${read.reason}`);
    if (read.path.otherReadings.length > 0)
      return refuse(`requests match without what follows a ;, or an encoded ? or #: leave it out of ${part}`);
    segments.push(...(read.path.segments ?? []));
  }
  const folded = ignoreCase ? segments.map((segment) => segment && foldCase(segment)) : segments;
  return { ok: true, path: { source, segments: folded, below, ignoreCase } };
}

/** What is most likely meant in another way, or would never match. */
function segmentProblem(part: string): string | undefined {
  if (part === '') return 'it has an empty segment (//)';
  if (part === '**') return '** stands at the end only';
  if (part.includes('*') && part !== '*')
    return `* stands for a whole segment: write %2A where ${part} means the character`;
  return /^:|^\{.*\}$/.test(part) ? `write * for a segment of any content, not ${part}` : undefined;
}

/** Is a path, given by its segments, in the set? */
export function matchesPath({ segments, below, ignoreCase }: RoutePath, asked: readonly string[]): boolean {
  if (below ? asked.length < segments.length : asked.length !== segments.length) return false;
  return segments.every((segment, index) => {
    if (segment === undefined) return true;
    const other = asked[index] ?? '';
    return segment === (ignoreCase ? foldCase(other) : other);
  });
}

/** A segment in lower case, also the letters that are percent-encoded. */
function foldCase(segment: string): string {
  // It decodes: paths that are not UTF-8 have been refused.
  return (segment.includes('%') ? decodeURIComponent(segment) : segment).toLowerCase();
}

/** Is every path of `inner` in `outer` as well? */
export function coversPath(outer: RoutePath, inner: RoutePath): boolean {
  const [wanted, given] = [outer.segments.length, inner.segments.length];
  if (outer.below ? given < wanted : given !== wanted || inner.below) return false;
  return outer.segments.every((segment, index) => {
    const other = inner.segments[index];
    if (segment === undefined || other === undefined) return segment === undefined;
    if (outer.ignoreCase) return segment === (inner.ignoreCase ? other : foldCase(other));
    return !inner.ignoreCase && segment === other;
  });
}

function refuse(reason: string): ParsedRoutePath {
  return { ok: false, reason };
}
