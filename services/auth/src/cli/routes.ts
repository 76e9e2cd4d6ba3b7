import { settingsSpec } from '../config/settings.ts';
import { judgeRoute } from '../ext-authz/decision.ts';
import {
  defaultRules,
  type RouteDemand,
  type RoutePath,
  type RouteRules,
  routeRuleWarnings,
} from '../ext-authz/route-rules.ts';
import { type LoadedRouteRules, loadRouteRules } from '../ext-authz/rules-file.ts';
import { loadSettings } from './load-settings.ts';
import type { Command } from './run-command.ts';

/** A request as it is asked about on the command line. */
export interface AskedRequest {
  /** In upper case. */
  readonly method: string;
  readonly path: string;
}

/** All rules in the order in which they are tried, as a table. */
export function rulesTable(rules: RouteRules): string {
  const routes = rules.routes.map(({ path, methods, demand, position }) => [
    String(position.line),
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
    const rule = route === undefined ? 'default' : `line ${route.position.line}: ${describePath(route.path)}`;
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

/** `routes`: checks a file of rules, and prints them, or which of them decides on requests; a bad file is the exit code 1. */
export const routesCommand: Command = async ({ environmentFiles, args, flags }) => {
  if (args.length % 2 === 1) {
    process.stderr.write(
      `${args.at(-1)} stands alone: a request is a method and a path, such as GET /docs\n`,
    );
    process.exitCode = 2;
    return;
  }
  const file = flags.file ?? (await loadSettings(environmentFiles)).settings.extAuthzRoutesFile;
  const loaded = await loadRules(file);
  if (!loaded.ok) {
    process.stderr.write(`${loaded.problems.join('\n')}\n`);
    process.exitCode = 1;
    return;
  }
  if (file === '')
    process.stderr.write(
      `no file is set (${settingsSpec.extAuthzRoutesFile.env}): these rules hold without one\n`,
    );
  for (const warning of routeRuleWarnings(loaded.rules)) process.stderr.write(`warning: ${warning}\n`);
  const asked = pairsOf(args);
  process.stdout.write(asked.length === 0 ? rulesTable(loaded.rules) : verdictsTable(loaded.rules, asked));
};

async function loadRules(file: string): Promise<LoadedRouteRules> {
  return file === '' ? { ok: true, rules: defaultRules } : loadRouteRules(file);
}

function pairsOf(args: readonly string[]): AskedRequest[] {
  return args.flatMap((method, index) =>
    index % 2 === 0 ? [{ method: method.toUpperCase(), path: args[index + 1] ?? '' }] : [],
  );
}
