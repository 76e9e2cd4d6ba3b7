import { RE2JS } from 're2js';
import { type PathSegments, parseRequestPath } from './request-path.ts';

export interface SegmentsPattern {
  readonly type: 'segments';
  /** Undefined matches any one segment. */
  readonly segments: readonly (string | undefined)[];
  /** Also matches everything below. */
  readonly isPrefix: boolean;
  /** Undefined: requests match with and without it. */
  readonly trailingSlash: boolean | undefined;
  /** Set for upstreams with case-insensitive paths. The segments are in lower case. */
  readonly ignoreCase: boolean;
}

/** Condition on a path. */
export type PathPattern =
  | SegmentsPattern
  | {
      readonly type: 'regex';
      /** Matches the whole path in canonical form. */
      readonly regex: RE2JS;
    };

export type ParsedPathPattern =
  | { readonly ok: true; readonly pattern: PathPattern }
  | { readonly ok: false; readonly reason: string };

/** Types of path matches, most specific first. */
export const pathMatchTypes = ['Exact', 'RegularExpression', 'PathPrefix'] as const;

type PathMatchType = (typeof pathMatchTypes)[number];

export interface PathMatch {
  readonly type: PathMatchType;
  readonly value: string;
}

/** Matches every path. */
export const everyPath: PathMatch = { type: 'PathPrefix', value: '/' };

/**
 * Parses a match of Gateway API. `Exact` is the whole path, and differs from the same path with a
 * slash at the end; `PathPrefix` compares whole segments.
 */
export function parsePathMatch(
  { type, value }: PathMatch,
  compile: CompileRegex = compileRegex,
): ParsedPathPattern {
  if (type === 'RegularExpression') {
    const regex = compile(value);
    return regex.ok ? { ok: true, pattern: { type: 'regex', regex: regex.regex } } : regex;
  }
  if (!value.startsWith('/')) return reject('must start with a slash');
  if (value.includes('?')) return reject('must have no query');
  const parsed = parseOwnPath(value);
  if (!parsed.ok) return parsed;
  const { segments, hasTrailingSlash } = parsed.own;
  const isPrefix = type === 'PathPrefix';
  const trailingSlash = isPrefix ? undefined : hasTrailingSlash;
  return { ok: true, pattern: { type: 'segments', segments, isPrefix, trailingSlash, ignoreCase: false } };
}

export type CompileRegex = (source: string) => CompiledRegex;

type CompiledRegex =
  | { readonly ok: true; readonly regex: RE2JS }
  | { readonly ok: false; readonly reason: string };

/** A regular expression of RE2, which takes linear time on any input. */
export function compileRegex(source: string): CompiledRegex {
  try {
    return { ok: true, regex: RE2JS.compile(source) };
  } catch (error) {
    return reject(`is no regular expression of RE2: ${error instanceof Error ? error.message : ''}`);
  }
}

/**
 * Compiles regular expressions until they are too large together. `x{1000}` has a thousand
 * instructions, each of which takes memory, and time for each character of a request.
 */
export class RegexBudget {
  readonly #maxSize: number;
  #size = 0;

  /** @param maxSize instructions of RE2 */
  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  compile(source: string): CompiledRegex {
    const compiled = this.#isExceeded() ? this.#reject() : compileRegex(source);
    if (compiled.ok) this.#size += compiled.regex.programSize();
    return compiled.ok && this.#isExceeded() ? this.#reject() : compiled;
  }

  #isExceeded(): boolean {
    return this.#size > this.#maxSize;
  }

  #reject() {
    return reject(
      `makes the regular expressions of the policy larger than ${this.#maxSize} instructions of RE2 together: use shorter repetitions than in x{100}, or fewer expressions`,
    );
  }
}

const notAscii = /[^\0-\x7f]+/g;

type OwnPath =
  | { readonly ok: true; readonly own: PathSegments }
  | { readonly ok: false; readonly reason: string };

/**
 * The canonical segments of a path in a rule, which requests are compared with.
 *
 * @param written the part of the path that messages show
 */
export function parseOwnPath(path: string, written: string = path): OwnPath {
  // Clients send characters outside ASCII percent-encoded.
  const parsed = parseRequestPath('GET', path.toWellFormed().replace(notAscii, encodeURIComponent));
  if (!parsed.ok) return reject(`requests with ${written} are always rejected: ${parsed.reason}`);
  const { own, alternatives } = parsed.path;
  if (own === undefined || alternatives.length > 0)
    return reject(`remove what follows the ;, or the encoded ? or #, from ${written}`);
  return { ok: true, own };
}

function reject(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}

/** Converts a segment to lower case, including percent-encoded letters. */
export function foldCase(segment: string): string {
  // Decoding succeeds: paths that are not UTF-8 were rejected.
  return (segment.includes('%') ? decodeURIComponent(segment) : segment).toLowerCase();
}

/** Whether `outer` matches every path that `inner` matches. Not decided for regular expressions. */
export function coversPattern(outer: PathPattern, inner: PathPattern): boolean {
  if (outer.type === 'regex') return false;
  if (inner.type === 'regex') return outer.isPrefix && outer.segments.length === 0;
  const [outerLength, innerLength] = [outer.segments.length, inner.segments.length];
  if (outer.isPrefix ? innerLength < outerLength : innerLength !== outerLength || inner.isPrefix)
    return false;
  if (outer.trailingSlash !== undefined && outer.trailingSlash !== inner.trailingSlash) return false;
  return outer.segments.every((segment, index) => {
    const other = inner.segments[index];
    if (segment === undefined || other === undefined) return segment === undefined;
    if (outer.ignoreCase) return segment === (inner.ignoreCase ? other : foldCase(other));
    return !inner.ignoreCase && segment === other;
  });
}
