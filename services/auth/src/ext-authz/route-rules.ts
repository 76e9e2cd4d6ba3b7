import { parseNode } from '@tollgate/yaml/documents';
import type { Position } from '@tollgate/yaml/position';
import type { YamlNode } from '@tollgate/yaml/tree';
import type { AssuranceLevel } from '../sessions/sessions.ts';
import { parseRequestPath } from './request-path.ts';
import { FieldReader, type FileProblem } from './yaml-fields.ts';

/**
 * A path pattern: `/healthz`, `/docs/*` (any one segment), `/api/**` (`/api` and everything below).
 */
export interface RoutePath {
  /** As written in the file. */
  readonly source: string;
  /** Undefined matches any one segment. */
  readonly segments: readonly (string | undefined)[];
  /** Ends with `**`. */
  readonly isPrefix: boolean;
  /** For upstreams with case-insensitive paths. The segments are in lower case. */
  readonly ignoreCase: boolean;
}

type ParsedRoutePath =
  | { readonly ok: true; readonly path: RoutePath }
  | { readonly ok: false; readonly reason: string };

const notAscii = /[^\0-\x7f]+/g;

/** Parses the pattern of a rule. Its segments are in the canonical form of `parseRequestPath`. */
function parseRoutePath(source: string, { ignoreCase = false } = {}): ParsedRoutePath {
  if (!source.startsWith('/')) return reject('a path starts with a slash');
  if (source.includes('?')) return reject('remove the query, which is not matched');
  const parts = source === '/' ? [] : source.slice(1).split('/');
  if (parts.at(-1) === '') return reject('remove the trailing slash: requests match with and without it');
  const isPrefix = parts.at(-1) === '**';
  const segments: (string | undefined)[] = [];
  for (const part of isPrefix ? parts.slice(0, -1) : parts) {
    const reason = segmentProblem(part);
    if (reason !== undefined) return reject(reason);
    if (part === '*') {
      segments.push(undefined);
      continue;
    }
    // Clients send characters outside ASCII percent-encoded.
    const parsed = parseRequestPath('GET', `/${part.toWellFormed().replace(notAscii, encodeURIComponent)}`);
    if (!parsed.ok) return reject(`requests with ${part} are always rejected: ${parsed.reason}`);
    if (parsed.path.alternatives.length > 0)
      return reject(`remove what follows the ;, or the encoded ? or #, from ${part}`);
    segments.push(...(parsed.path.segments ?? []));
  }
  const folded = ignoreCase ? segments.map((segment) => segment && foldCase(segment)) : segments;
  return { ok: true, path: { source, segments: folded, isPrefix, ignoreCase } };
}

/** Rejects what is most likely a mistake, or would never match. */
function segmentProblem(part: string): string | undefined {
  if (part === '') return 'it has an empty segment (//)';
  if (part === '**') return '** is only allowed at the end';
  if (part.includes('*') && part !== '*')
    return `* matches a whole segment: write %2A for the character in ${part}`;
  return /^:|^\{.*\}$/.test(part) ? `write * for any segment, not ${part}` : undefined;
}

function matchesPath({ segments, isPrefix, ignoreCase }: RoutePath, path: readonly string[]): boolean {
  if (isPrefix ? path.length < segments.length : path.length !== segments.length) return false;
  return segments.every((segment, index) => {
    if (segment === undefined) return true;
    const other = path[index] ?? '';
    return segment === (ignoreCase ? foldCase(other) : other);
  });
}

/** Converts a segment to lower case, including percent-encoded letters. */
function foldCase(segment: string): string {
  // Decoding succeeds: paths that are not UTF-8 were rejected.
  return (segment.includes('%') ? decodeURIComponent(segment) : segment).toLowerCase();
}

/** Whether `outer` matches every path that `inner` matches. */
function coversPath(outer: RoutePath, inner: RoutePath): boolean {
  const [outerLength, innerLength] = [outer.segments.length, inner.segments.length];
  if (outer.isPrefix ? innerLength < outerLength : innerLength !== outerLength || inner.isPrefix)
    return false;
  return outer.segments.every((segment, index) => {
    const other = inner.segments[index];
    if (segment === undefined || other === undefined) return segment === undefined;
    if (outer.ignoreCase) return segment === (inner.ignoreCase ? other : foldCase(other));
    return !inner.ignoreCase && segment === other;
  });
}

function reject(reason: string): ParsedRoutePath {
  return { ok: false, reason };
}

/** The first route that matches applies, or else `fallback`. */
export interface RouteRules {
  readonly routes: readonly RouteRule[];
  readonly fallback: RouteRequirement;
}

export interface RouteRule {
  readonly path: RoutePath;
  /** Undefined: all. `GET` includes `HEAD`. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly requirement: RouteRequirement;
  /** Of the path in the file. */
  readonly position: Position;
}

/** What a route requires of the caller. */
export type RouteRequirement =
  /** Nothing. */
  | { readonly access: 'public' }
  /** All requests are denied. */
  | { readonly access: 'deny' }
  /** A valid token. */
  | {
      readonly access: 'authenticated';
      /** Undefined: any role. */
      readonly roles: readonly string[] | undefined;
      readonly aal: AssuranceLevel;
      /** Whether anonymous users are allowed. */
      readonly anonymous: boolean;
    };

/** Any user who is not anonymous. */
const signedIn: RouteRequirement = {
  access: 'authenticated',
  roles: undefined,
  aal: 'aal1',
  anonymous: false,
};

/** The rules without a file: every path requires a user who is signed in. */
export const defaultRules: RouteRules = { routes: [], fallback: signedIn };

/** Returns the first route that matches. Takes time proportional to routes × segments. */
export function findRoute(
  { routes }: RouteRules,
  method: string,
  segments: readonly string[] | undefined,
): RouteRule | undefined {
  if (segments === undefined) return undefined;
  return routes.find(
    ({ methods, path }) => (methods === undefined || methods.has(method)) && matchesPath(path, segments),
  );
}

/** Valid rules that may protect less than intended. */
export function routeRuleWarnings({ routes, fallback }: RouteRules): string[] {
  const lines = routes
    .filter(({ requirement }) => requirement.access === 'deny')
    .map(({ position }) => position.line);
  if (fallback.access !== 'public' || lines.length === 0) return [];
  return [
    `default is public, so access: deny (line ${lines.join(', ')}) protects only these paths: the upstream may serve the same ` +
      'resource under another path, such as in another case. Use default: deny or authenticated, with public routes',
  ];
}

/** The rules, or all problems. */
export type ParsedRouteRules =
  | { readonly ok: true; readonly rules: RouteRules }
  | { readonly ok: false; readonly problems: readonly FileProblem[] };

/** Routes are matched in order: 1000 take some microseconds. */
const maxRoutes = 1000;
/** Rules have four levels. */
const maxDepth = 16;

const accesses = ['public', 'authenticated', 'deny'] as const satisfies readonly RouteRequirement['access'][];
const assuranceLevels = ['aal1', 'aal2', 'aal3'] as const satisfies readonly AssuranceLevel[];

/** Registered methods. A misspelled method would never match. */
const knownMethods = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'],
  ...['PROPFIND', 'PROPPATCH', 'MKCOL', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH'],
];

/** Parses the file: `routes`, of which the first match applies, and `default`. */
export function parseRouteRules(text: string): ParsedRouteRules {
  const yaml = parseNode(text, { maxDepth });
  if (!yaml.ok)
    return { ok: false, problems: [{ position: yaml.error.position, message: yaml.error.reason }] };
  const problems: FileProblem[] = [];
  const report = (position: Position | undefined, message: string): void =>
    void problems.push({ position, message });
  const reader = new FieldReader(report);
  const rules = readRules(yaml.root, reader, report);
  if (problems.length === 0) return { ok: true, rules };
  return { ok: false, problems: problems.sort(byPosition) };
}

type Report = (position: Position | undefined, message: string) => void;

function readRules(root: YamlNode | undefined, reader: FieldReader, report: Report): RouteRules {
  // An empty file is most likely still being written.
  if (root === undefined) report(undefined, 'the file is empty: write routes: [] for no rules');
  const fields = root === undefined ? {} : reader.fields(root, ['routes', 'default']);
  const items = fields.routes === undefined ? [] : reader.items(fields.routes);
  if (items.length > maxRoutes)
    report(fields.routes?.position, `too many routes: ${items.length}, the limit is ${maxRoutes}`);
  const routes = items.slice(0, maxRoutes).flatMap((item) => readRoute(item, reader, report) ?? []);
  reportUnreachable(routes, report);
  const access = fields.default === undefined ? 'authenticated' : reader.oneOf(fields.default, accesses);
  return { routes, fallback: access === undefined || access === 'authenticated' ? signedIn : { access } };
}

function readRoute(item: YamlNode, reader: FieldReader, report: Report): RouteRule | undefined {
  const fields = reader.fields(item, [
    'path',
    'methods',
    'access',
    'roles',
    'aal',
    'anonymous',
    'ignore_case',
  ]);
  const methods = fields.methods && readMethods(fields.methods, reader);
  const requirement = readRequirement(fields, reader, report);
  if (fields.path === undefined) {
    if (item.kind === 'mapping') report(item.position, 'a route requires a path');
    return undefined;
  }
  const { position } = fields.path;
  const ignoreCase = (fields.ignore_case && reader.flag(fields.ignore_case)) ?? false;
  const path = readPath(fields.path, { ignoreCase, reader, report });
  return path && { path, methods, requirement, position };
}

function readPath(
  value: YamlNode,
  options: { readonly ignoreCase: boolean; readonly reader: FieldReader; readonly report: Report },
): RoutePath | undefined {
  const { ignoreCase, reader, report } = options;
  const source = reader.text(value);
  if (source === undefined) return undefined;
  const parsed = parseRoutePath(source, { ignoreCase });
  if (parsed.ok) return parsed.path;
  report(value.position, parsed.reason);
  return undefined;
}

function readMethods(value: YamlNode, reader: FieldReader): ReadonlySet<string> {
  const methods = new Set(reader.list(value, (item) => reader.oneOf(item, knownMethods)));
  // HEAD must not bypass a rule for GET.
  if (methods.has('GET')) methods.add('HEAD');
  return methods;
}

function readRequirement(
  fields: Partial<Record<'access' | 'roles' | 'aal' | 'anonymous', YamlNode>>,
  reader: FieldReader,
  report: Report,
): RouteRequirement {
  const access = (fields.access && reader.oneOf(fields.access, accesses)) ?? 'authenticated';
  const roles = fields.roles && reader.list(fields.roles, (item) => reader.text(item));
  const aal = (fields.aal && reader.oneOf(fields.aal, assuranceLevels)) ?? 'aal1';
  const anonymous = (fields.anonymous && reader.flag(fields.anonymous)) ?? false;
  if (access === 'authenticated') return { access, roles, aal, anonymous };
  for (const name of ['roles', 'aal', 'anonymous'] as const)
    if (fields[name] !== undefined)
      report(fields[name].position, `${name} has no effect with access: ${access}; remove one of them`);
  return { access };
}

/** A rule that never matches is a mistake. */
function reportUnreachable(routes: readonly RouteRule[], report: Report): void {
  for (const [index, { path, methods, position }] of routes.entries()) {
    // Its methods are invalid, which has been reported.
    if (methods?.size === 0) continue;
    const earlierRules = routes.slice(0, index).filter((earlier) => coversPath(earlier.path, path));
    const all = earlierRules.find((earlier) => earlier.methods === undefined);
    const taken = new Set(earlierRules.flatMap((earlier) => [...(earlier.methods ?? [])]));
    if (all === undefined && (methods === undefined || ![...methods].every((method) => taken.has(method))))
      continue;
    const lines = [...new Set((all ? [all] : earlierRules).map((rule) => rule.position.line))].join(', ');
    report(position, `${path.source} never matches: line ${lines} already matches all of its requests`);
  }
}

function byPosition({ position: a }: FileProblem, { position: b }: FileProblem): number {
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}
