import { compileRegex, everyPath, type PathPattern } from './path-pattern.ts';
import { precedenceOf } from './precedence.ts';
import { type CompiledMatch, compileMatch, type RequestMatch, type ValueMatch } from './request-match.ts';

/**
 * Compiles a match of an HTTPRoute or a GRPCRoute. Unlike those of policies, its path is compared
 * as it is written, which is what gateways do, and of several matches of one header the first
 * counts.
 * Undefined if it is not known which requests match.
 */
export function compileRouteMatch(match: RequestMatch): CompiledMatch | undefined {
  const { path = everyPath, methods, headers, queryParams } = match;
  const pattern = toLiteralPattern(path);
  const values = compileMatch({
    methods,
    headers: headers && withoutRepetitions(headers, (name) => name.toLowerCase()),
    queryParams: queryParams && withoutRepetitions(queryParams, (name) => name),
  });
  if (pattern === undefined || !values.ok) return undefined;
  return { pattern, condition: values.match.condition, precedence: precedenceOf(match) };
}

/** Stands for a match that could not be compiled: every request, with its precedence. */
export function coveringMatch(match: RequestMatch): CompiledMatch {
  const pattern: PathPattern = {
    ...{ type: 'segments', segments: [], isPrefix: true, trailingSlash: undefined, ignoreCase: false },
  };
  return { pattern, condition: undefined, precedence: precedenceOf(match) };
}

function toLiteralPattern({ type, value }: NonNullable<RequestMatch['path']>): PathPattern | undefined {
  if (type === 'RegularExpression') {
    const compiled = compileRegex(value);
    return compiled.ok ? { type: 'regex', regex: compiled.regex } : undefined;
  }
  const segments = value.split('/').slice(1);
  const hasTrailingSlash = segments.at(-1) === '';
  if (hasTrailingSlash) segments.pop();
  const isPrefix = type === 'PathPrefix';
  const trailingSlash = isPrefix ? undefined : hasTrailingSlash && segments.length > 0;
  return { type: 'segments', segments, isPrefix, trailingSlash, ignoreCase: false };
}

function withoutRepetitions(
  matches: readonly ValueMatch[],
  normalize: (name: string) => string,
): readonly ValueMatch[] {
  const names = matches.map(({ name }) => normalize(name));
  return matches.filter((_match, index) => names.indexOf(names[index] ?? '') === index);
}
