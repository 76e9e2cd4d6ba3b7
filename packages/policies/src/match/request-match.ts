import type { PathEntry } from './path-index.ts';
import {
  type CompileRegex,
  compileRegex,
  everyPath,
  type PathMatch,
  type PathPattern,
  parsePathMatch,
} from './path-pattern.ts';
import { type Precedence, precedenceOf } from './precedence.ts';

/** Registered methods. A misspelled method would never match. */
export const knownMethods: readonly string[] = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'],
  ...['PROPFIND', 'PROPPATCH', 'MKCOL', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH'],
];

/** The parts of a request that matches compare, beside its path. */
export interface RequestAttributes {
  /** As it was sent. */
  readonly method: string;
  /** Host and port, as the client sent them; empty when it sent none. */
  readonly host: string;
  /** The path and query that the client sent. */
  readonly path: string;
  /** Keys are lower-case names. The values of repeated headers are joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Compares a header or a query parameter. */
export interface ValueMatch {
  readonly type?: 'Exact' | 'RegularExpression' | undefined;
  readonly name: string;
  readonly value: string;
}

/** A match of Gateway API: all of its parts must match. */
export interface RequestMatch {
  /** Default: every path. */
  readonly path?: PathMatch | undefined;
  /** Any of them; default: all. */
  readonly methods?: readonly string[] | undefined;
  readonly headers?: readonly ValueMatch[] | undefined;
  readonly queryParams?: readonly ValueMatch[] | undefined;
}

type Condition = (request: RequestAttributes) => boolean;

interface MatchProblem {
  /** Path of the part in the match: `headers[0].value`. */
  readonly field: string;
  readonly message: string;
}

export interface CompiledMatch {
  readonly pattern: PathPattern;
  readonly condition: Condition | undefined;
  readonly precedence: Precedence;
}

export type MatchResult =
  | { readonly ok: true; readonly match: CompiledMatch }
  | { readonly ok: false; readonly problems: readonly MatchProblem[] };

/** Compiles a match, or says what is wrong with it. */
export function compileMatch(match: RequestMatch, compile: CompileRegex = compileRegex): MatchResult {
  const { path = everyPath, methods, headers = [], queryParams = [] } = match;
  const problems: MatchProblem[] = [];
  const report = (field: string, message: string): void => void problems.push({ field, message });
  const parsed = parsePathMatch(path, compile);
  if (!parsed.ok) report('path.value', parsed.reason);
  for (const [index, method] of (methods ?? []).entries())
    if (!knownMethods.includes(method)) report(`methods[${index}]`, unknownMethod(method));
  const options = { report, compile };
  const compared = [
    ...compileValues(headers, readHeader, { ...options, field: 'headers', normalize: toLowerCase }),
    ...compileValues(queryParams, readQueryParam, { ...options, field: 'queryParams', normalize: unchanged }),
  ];
  if (!parsed.ok || problems.length > 0) return { ok: false, problems };
  const conditions = [...(methods === undefined ? [] : [toMethodCondition(methods)]), ...compared];
  return {
    ok: true,
    match: {
      pattern: parsed.pattern,
      condition: joinConditions(conditions),
      precedence: precedenceOf(match),
    },
  };
}

/** Joins a match with what it leads to. */
export function toEntry<Value>(
  { pattern, condition }: CompiledMatch,
  value: Value,
): PathEntry<RequestAttributes, Value> {
  return { pattern, condition, value };
}

function unknownMethod(method: string): string {
  const upper = method.toUpperCase();
  return knownMethods.includes(upper) ? `must be ${upper}` : `'${method}' is no method of HTTP`;
}

function toMethodCondition(methods: readonly string[]): Condition {
  const known = new Set(methods);
  return ({ method }) => known.has(method);
}

function joinConditions(conditions: readonly Condition[]): Condition | undefined {
  const [first, second] = conditions;
  if (first === undefined || second === undefined) return first;
  return (request) => conditions.every((condition) => condition(request));
}

type ReadValue = (request: RequestAttributes, name: string) => string | undefined;

interface ValuesOptions {
  readonly field: string;
  readonly normalize: (name: string) => string;
  readonly report: (field: string, message: string) => void;
  readonly compile: CompileRegex;
}

function compileValues(
  matches: readonly ValueMatch[],
  read: ReadValue,
  { field, normalize, report, compile }: ValuesOptions,
): Condition[] {
  const names = new Set<string>();
  return matches.flatMap(({ type = 'Exact', name: written, value }, index): readonly Condition[] => {
    const name = normalize(written);
    if (names.has(name)) report(`${field}[${index}].name`, `'${written}' is compared twice: remove one`);
    names.add(name);
    if (type === 'Exact') return [(request) => read(request, name) === value];
    const compiled = compile(value);
    if (!compiled.ok) {
      report(`${field}[${index}].value`, compiled.reason);
      return [];
    }
    return [
      (request) => {
        const found = read(request, name);
        return found !== undefined && compiled.regex.testExact(found);
      },
    ];
  });
}

const unchanged = (name: string): string => name;
const toLowerCase = (name: string): string => name.toLowerCase();

function readHeader({ host, headers }: RequestAttributes, name: string): string | undefined {
  // Envoy compares `:authority`, which need not be among the headers of a check.
  if (name === 'host') return host === '' ? undefined : host;
  return Object.hasOwn(headers, name) ? headers[name] : undefined;
}

/** The first parameter of that name counts. It is not decoded, as Envoy compares it. */
function readQueryParam({ path }: RequestAttributes, name: string): string | undefined {
  const start = path.indexOf('?');
  if (start === -1) return undefined;
  for (const pair of path.slice(start + 1).split('&')) {
    const equals = pair.indexOf('=');
    if ((equals === -1 ? pair : pair.slice(0, equals)) === name)
      return equals === -1 ? '' : pair.slice(equals + 1);
  }
  return undefined;
}
