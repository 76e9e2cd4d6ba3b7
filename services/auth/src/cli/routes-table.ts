import { judgeRoute } from '../domain/authz/judge-route.ts';
import type { RoutePath } from '../domain/authz/route-path.ts';
import type { RouteDemand, RouteRules } from '../domain/authz/route-rules.ts';

/** A request as it is asked about on the command line. */
export interface AskedRequest {
  /** In upper case. */
  readonly method: string;
  readonly path: string;
}

/** All rules in the order in which they are tried, as a table. */
export function rulesTable(rules: RouteRules): string {
  const routes = rules.routes.map(({ path, methods, demand, place }) => [
    String(place.line),
    methods === undefined ? 'all' : [...methods].join(','),
    describePath(path),
    describeDemand(demand),
  ]);
  const fallback = ['-', 'all', 'everything else', describeDemand(rules.fallback)];
  return table([['LINE', 'METHODS', 'PATH', 'DEMANDS'], ...routes, fallback]);
}

/** Which rule decides on each request, and what it demands, as a table. */
export function verdictsTable(rules: RouteRules, asked: readonly AskedRequest[]): string {
  const rows = asked.map(({ method, path }) => {
    const verdict = judgeRoute(rules, method, path);
    if (!verdict.ok) return [method, path, '-', `refused, path_not_canonical: ${verdict.reason}`];
    const { route, demand } = verdict;
    const rule = route === undefined ? 'default' : `line ${route.place.line}: ${describePath(route.path)}`;
    return [method, path, rule, describeDemand(demand)];
  });
  return table([['METHOD', 'PATH', 'RULE', 'DEMANDS'], ...rows]);
}

function describePath({ source, ignoreCase }: RoutePath): string {
  return ignoreCase ? `${source} (any case)` : source;
}

function describeDemand(demand: RouteDemand): string {
  if (demand.access === 'public') return 'nothing (public)';
  if (demand.access === 'deny') return 'refused for everybody (deny)';
  const { roles, aal, anonymous } = demand;
  const who = anonymous ? 'any user, also an anonymous one' : 'a user who has signed in';
  const role = roles === undefined ? '' : `, role ${roles.join(' or ')}`;
  return `${who}${role}${aal === 'aal1' ? '' : `, at least ${aal}`}`;
}

function table(rows: readonly (readonly string[])[]): string {
  const [first = []] = rows;
  const widths = first.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}
