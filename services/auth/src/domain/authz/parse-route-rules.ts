import type { AssuranceLevel } from '../session.ts';
import { createFieldReader, type FieldReader } from './field-reader.ts';
import type { Place, PlacedProblem, PlacedValue } from './placed-value.ts';
import { coversPath, parseRoutePath, type RoutePath } from './route-path.ts';
import { type RouteDemand, type RouteRule, type RouteRules, signedIn } from './route-rules.ts';

/** Rules, or everything that is wrong with them. */
export type ParsedRouteRules =
  | { readonly ok: true; readonly rules: RouteRules }
  | { readonly ok: false; readonly problems: readonly PlacedProblem[] };

/** Every request looks at them one by one until one matches: this many cost some microseconds. */
const maxRoutes = 1000;

const accesses = ['public', 'authenticated', 'deny'] as const satisfies readonly RouteDemand['access'][];
const assuranceLevels = ['aal1', 'aal2', 'aal3'] as const satisfies readonly AssuranceLevel[];

/** Methods that a rule may name: those of HTTP, of WebDAV and a few more that are registered. A misspelled one would match nothing. */
const knownMethods = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'],
  ...['PROPFIND', 'PROPPATCH', 'MKCOL', 'COPY', 'MOVE', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH'],
];

/** Reads the rules of a file: `routes`, of which the first that matches decides, and `default` for the rest. */
export function parseRouteRules(root: PlacedValue | undefined): ParsedRouteRules {
  const problems: PlacedProblem[] = [];
  const report = (place: Place | undefined, message: string): void => void problems.push({ place, message });
  const reader = createFieldReader(report);
  const rules = readRules(root, reader, report);
  if (problems.length === 0) return { ok: true, rules };
  return { ok: false, problems: problems.sort(byPlace) };
}

type Report = (place: Place | undefined, message: string) => void;

function readRules(root: PlacedValue | undefined, reader: FieldReader, report: Report): RouteRules {
  // An empty file is most likely one that is being written.
  if (root === undefined) report(undefined, 'the file is empty: without rules of routes, write routes: []');
  const fields = root === undefined ? {} : reader.fields(root, ['routes', 'default']);
  const items = fields.routes === undefined ? [] : reader.items(fields.routes);
  if (items.length > maxRoutes)
    report(fields.routes?.place, `there are ${items.length} routes, more than ${maxRoutes}`);
  const routes = items.slice(0, maxRoutes).flatMap((item) => readRoute(item, reader, report) ?? []);
  reportUnreachable(routes, report);
  const access = fields.default === undefined ? 'authenticated' : reader.oneOf(fields.default, accesses);
  return { routes, fallback: access === undefined || access === 'authenticated' ? signedIn : { access } };
}

function readRoute(item: PlacedValue, reader: FieldReader, report: Report): RouteRule | undefined {
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
    if (item.kind === 'mapping') report(item.place, 'a route needs a path');
    return undefined;
  }
  const { place } = fields.path;
  const ignoreCase = (fields.ignore_case && reader.flag(fields.ignore_case)) ?? false;
  const path = readPath(fields.path, { ignoreCase, reader, report });
  return path && { path, methods, demand, place };
}

function readPath(
  value: PlacedValue,
  options: { readonly ignoreCase: boolean; readonly reader: FieldReader; readonly report: Report },
): RoutePath | undefined {
  const { ignoreCase, reader, report } = options;
  const source = reader.text(value);
  if (source === undefined) return undefined;
  const parsed = parseRoutePath(source, { ignoreCase });
  if (parsed.ok) return parsed.path;
  report(value.place, parsed.reason);
  return undefined;
}

function readMethods(value: PlacedValue, reader: FieldReader): ReadonlySet<string> {
  const methods = new Set(reader.list(value, (item) => reader.oneOf(item, knownMethods)));
  // The same request without its body must not get past a rule by another name.
  if (methods.has('GET')) methods.add('HEAD');
  return methods;
}

function readDemand(
  fields: Partial<Record<'access' | 'roles' | 'aal' | 'anonymous', PlacedValue>>,
  reader: FieldReader,
  report: Report,
): RouteDemand {
  const access = (fields.access && reader.oneOf(fields.access, accesses)) ?? 'authenticated';
  const roles = fields.roles && reader.list(fields.roles, reader.text);
  const aal = (fields.aal && reader.oneOf(fields.aal, assuranceLevels)) ?? 'aal1';
  const anonymous = (fields.anonymous && reader.flag(fields.anonymous)) ?? false;
  if (access === 'authenticated') return { access, roles, aal, anonymous };
  for (const name of ['roles', 'aal', 'anonymous'] as const)
    if (fields[name] !== undefined)
      report(fields[name].place, `${name} says nothing where access is ${access}: leave one of them out`);
  return { access };
}

/** A rule that never decides is one that somebody relies on in vain. */
function reportUnreachable(routes: readonly RouteRule[], report: Report): void {
  for (const [index, { path, methods, place }] of routes.entries()) {
    // Those that it names could not be read, which is reported.
    if (methods?.size === 0) continue;
    const before = routes.slice(0, index).filter((earlier) => coversPath(earlier.path, path));
    const all = before.find((earlier) => earlier.methods === undefined);
    const taken = new Set(before.flatMap((earlier) => [...(earlier.methods ?? [])]));
    if (all === undefined && (methods === undefined || ![...methods].every((method) => taken.has(method))))
      continue;
    const lines = [...new Set((all ? [all] : before).map((rule) => rule.place.line))].join(', ');
    report(place, `${path.source} never matches here: line ${lines} has all of it already`);
  }
}

function byPlace({ place: a }: PlacedProblem, { place: b }: PlacedProblem): number {
  return (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);
}
