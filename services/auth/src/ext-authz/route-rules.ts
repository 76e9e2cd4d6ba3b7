import { parseNode } from '@tollgate/yaml/documents';
import type { Position } from '@tollgate/yaml/position';
import type { YamlNode } from '@tollgate/yaml/tree';
import type { AssuranceLevel } from '../sessions/sessions.ts';
import { readRequestPath } from './request-path.ts';
import { FieldReader, type FileProblem } from './yaml-fields.ts';

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
type ParsedRoutePath =
  | { readonly ok: true; readonly path: RoutePath }
  | { readonly ok: false; readonly reason: string };

const notAscii = /[^\0-\x7f]+/g;

/** Reads a set of paths as a rule has it. Its segments become what `readRequestPath` makes of those of a request. */
function parseRoutePath(source: string, { ignoreCase = false } = {}): ParsedRoutePath {
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
function matchesPath({ segments, below, ignoreCase }: RoutePath, asked: readonly string[]): boolean {
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
function coversPath(outer: RoutePath, inner: RoutePath): boolean {
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

/** Which requests pass, and what of. The first route that matches decides; `fallback` where none does. */
export interface RouteRules {
  readonly routes: readonly RouteRule[];
  readonly fallback: RouteDemand;
}

/** What is demanded of requests with these methods to these paths. */
export interface RouteRule {
  readonly path: RoutePath;
  /** Undefined: all. With `GET` there is `HEAD`. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly demand: RouteDemand;
  /** Of the path in the file of rules. */
  readonly position: Position;
}

/** What a request must bring. */
export type RouteDemand =
  /** Nothing. */
  | { readonly access: 'public' }
  /** It never passes. */
  | { readonly access: 'deny' }
  /** A token of somebody who has these. */
  | {
      readonly access: 'authenticated';
      /** One of these; undefined: any. */
      readonly roles: readonly string[] | undefined;
      readonly aal: AssuranceLevel;
      /** May anonymous users pass? */
      readonly anonymous: boolean;
    };

/** A token of a user who has signed in. */
const signedIn: RouteDemand = {
  access: 'authenticated',
  roles: undefined,
  aal: 'aal1',
  anonymous: false,
};

/** The rules without a file: every path needs a user who has signed in. */
export const defaultRules: RouteRules = { routes: [], fallback: signedIn };

/** The first route that matches; undefined when none does. The time is bounded by the number of routes times that of segments. */
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

/** What is valid, and protects less than it seems to. */
export function routeRuleWarnings({ routes, fallback }: RouteRules): string[] {
  const lines = routes.filter(({ demand }) => demand.access === 'deny').map(({ position }) => position.line);
  if (fallback.access !== 'public' || lines.length === 0) return [];
  return [
    `default is public, so access: deny (line ${lines.join(', ')}) protects only the paths that are written there: an upstream that ` +
      'serves the same resource under another path, such as in another case, is open. Prefer default: deny or authenticated, with public routes',
  ];
}

/** Rules, or everything that is wrong with them. */
export type ParsedRouteRules =
  | { readonly ok: true; readonly rules: RouteRules }
  | { readonly ok: false; readonly problems: readonly FileProblem[] };

/** Every request looks at them one by one until one matches: this many cost some microseconds. */
const maxRoutes = 1000;

/** Rules have four levels. */
const maxDepth = 16;

const accesses = ['public', 'authenticated', 'deny'] as const satisfies readonly RouteDemand['access'][];
const assuranceLevels = ['aal1', 'aal2', 'aal3'] as const satisfies readonly AssuranceLevel[];

/** Methods that a rule may name: those of HTTP, of WebDAV and a few more that are registered. A misspelled one would match nothing. */
const knownMethods = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'],
  ...['PROPFIND', 'PROPPATCH', 'MKCOL', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH'],
];

/** Reads the rules of a file: `routes`, of which the first that matches decides, and `default` for the rest. */
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
  // An empty file is most likely one that is being written.
  if (root === undefined) report(undefined, 'the file is empty: without rules of routes, write routes: []');
  const fields = root === undefined ? {} : reader.fields(root, ['routes', 'default']);
  const items = fields.routes === undefined ? [] : reader.items(fields.routes);
  if (items.length > maxRoutes)
    report(fields.routes?.position, `there are ${items.length} routes, more than ${maxRoutes}`);
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
  const demand = readDemand(fields, reader, report);
  if (fields.path === undefined) {
    if (item.kind === 'mapping') report(item.position, 'a route needs a path');
    return undefined;
  }
  const { position } = fields.path;
  const ignoreCase = (fields.ignore_case && reader.flag(fields.ignore_case)) ?? false;
  const path = readPath(fields.path, { ignoreCase, reader, report });
  return path && { path, methods, demand, position };
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
  // The same request without its body must not get past a rule by another name.
  if (methods.has('GET')) methods.add('HEAD');
  return methods;
}

function readDemand(
  fields: Partial<Record<'access' | 'roles' | 'aal' | 'anonymous', YamlNode>>,
  reader: FieldReader,
  report: Report,
): RouteDemand {
  const access = (fields.access && reader.oneOf(fields.access, accesses)) ?? 'authenticated';
  const roles = fields.roles && reader.list(fields.roles, (item) => reader.text(item));
  const aal = (fields.aal && reader.oneOf(fields.aal, assuranceLevels)) ?? 'aal1';
  const anonymous = (fields.anonymous && reader.flag(fields.anonymous)) ?? false;
  if (access === 'authenticated') return { access, roles, aal, anonymous };
  for (const name of ['roles', 'aal', 'anonymous'] as const)
    if (fields[name] !== undefined)
      report(fields[name].position, `${name} says nothing where access is ${access}: leave one of them out`);
  return { access };
}

/** A rule that never decides is one that somebody relies on in vain. */
function reportUnreachable(routes: readonly RouteRule[], report: Report): void {
  for (const [index, { path, methods, position }] of routes.entries()) {
    // Those that it names could not be read, which is reported.
    if (methods?.size === 0) continue;
    const before = routes.slice(0, index).filter((earlier) => coversPath(earlier.path, path));
    const all = before.find((earlier) => earlier.methods === undefined);
    const taken = new Set(before.flatMap((earlier) => [...(earlier.methods ?? [])]));
    if (all === undefined && (methods === undefined || ![...methods].every((method) => taken.has(method))))
      continue;
    const lines = [...new Set((all ? [all] : before).map((rule) => rule.position.line))].join(', ');
    report(position, `${path.source} never matches here: line ${lines} has all of it already`);
  }
}

function byPosition({ position: a }: FileProblem, { position: b }: FileProblem): number {
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}
