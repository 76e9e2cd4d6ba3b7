import { alignColumns } from '@tollgate/kit/table';
import type { Access } from '@tollgate/policies/compile/access';
import type { PolicyRule } from '@tollgate/policies/compile/compile';
import { matchRequest } from '@tollgate/policies/decide/match-request';
import {
  createDefaultRules,
  hasLimits,
  type RoutePath,
  type RouteRules,
} from '@tollgate/policies/routes-file/route-rules';
import { convertToPolicy } from '@tollgate/policies/routes-file/to-policy';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { describeRuleWarnings, loadRouteRules, toDefaultAccess } from '../ext-authz/rules-file.ts';
import type { Command, CommandFlags } from './arguments.ts';
import { withDefaultsOfMode } from './development.ts';
import { loadSettings } from './load-settings.ts';

interface RouteRequest {
  /** The method in upper case. */
  readonly method: string;
  readonly path: string;
}

/**
 * `routes`: validates a rules file and prints its rules, or the rules that match the given
 * requests, or an AccessPolicy.
 */
export const routesCommand: Command = async ({ environmentFiles, args, flags }) => {
  const problem = findProblem(args, flags);
  if (problem !== undefined) {
    process.stderr.write(`${problem}\n`);
    process.exitCode = 2;
    return;
  }
  // A file that is given is checked without the settings of a server.
  const settings =
    flags.file === undefined
      ? (await loadSettings(environmentFiles, withDefaultsOfMode)).settings
      : undefined;
  const file = flags.file ?? settings?.extAuthzRoutesFile ?? '';
  const address = settings?.extAuthzRateLimitAddress;
  const canLimit = address !== '';
  const hasOrganizations = settings?.organizationsEnabled ?? true;
  const hasClients = settings?.oauthServerEnabled ?? true;
  const defaultAccess = toDefaultAccess(settings?.extAuthzDefaultAccess ?? '');
  const loaded =
    file === ''
      ? { ok: true as const, rules: createDefaultRules(defaultAccess) }
      : await loadRouteRules(file, {
          canLimit,
          hasOrganizations,
          hasClients,
          defaultAccess,
          hasApiKeys: settings?.apiKeysEnabled ?? true,
        });
  if (!loaded.ok) {
    process.stderr.write(`${loaded.problems.join('\n')}\n`);
    process.exitCode = 1;
    return;
  }
  if (file === '')
    process.stderr.write(`${settingsSpec.extAuthzRoutesFile.env} is not set: these are the default rules\n`);
  for (const warning of describeRuleWarnings(loaded.rules, { canLimit: canLimit && address !== undefined }))
    process.stderr.write(`warning: ${warning}\n`);
  if (flags['to-policy'] === true) {
    writePolicy(loaded.rules, flags);
    return;
  }
  const requests = parseRequests(args);
  process.stdout.write(
    requests.length === 0 ? formatRules(loaded.rules) : formatMatches(loaded.rules, requests),
  );
  process.stdout.write(formatDomain(loaded.rules, settings));
};

const policyFlags = ['name', 'namespace', 'hosts'] as const;

function findProblem(args: readonly string[], flags: CommandFlags): string | undefined {
  if (flags['to-policy'] === true)
    return args.length > 0 ? '--to-policy converts the whole file: leave out the requests' : undefined;
  const flag = policyFlags.find((name) => flags[name] !== undefined);
  if (flag !== undefined) return `--${flag} is for --to-policy: add it`;
  return args.length % 2 === 1
    ? `${args.at(-1)} is incomplete: a request is a method and a path, such as GET /docs`
    : undefined;
}

function writePolicy(
  rules: RouteRules,
  { name = 'routes', namespace = 'default', hosts = '*' }: CommandFlags,
): void {
  const target = { name, namespace, hosts: hosts.split(',').map((host) => host.trim()) };
  const converted = convertToPolicy(rules, target);
  if (!converted.ok) {
    process.stderr.write(converted.problems.map((problem) => `${problem}\n`).join(''));
    process.exitCode = 1;
    return;
  }
  for (const warning of converted.warnings) process.stderr.write(`warning: ${warning}\n`);
  process.stdout.write(converted.yaml);
}

function parseRequests(args: readonly string[]): RouteRequest[] {
  return args.flatMap((method, index) =>
    index % 2 === 0 ? [{ method: method.toUpperCase(), path: args[index + 1] ?? '' }] : [],
  );
}

/** A table of all rules in the order in which they are matched. */
export function formatRules(rules: RouteRules): string {
  const routes = rules.routes.map((route) => [
    String(route.position.line),
    route.methods === undefined ? 'all' : [...route.methods].join(','),
    formatPath(route.path),
    formatAccess(route.access),
    formatLimits(route),
  ]);
  const { fallback } = rules.policy;
  const others = ['-', 'all', 'everything else', formatAccess(fallback.access), formatLimits(fallback)];
  return formatTable([['LINE', 'METHODS', 'PATH', 'REQUIRES', 'LIMIT'], ...routes, others]);
}

/** A table of requests with the rule that matches each. */
export function formatMatches(rules: RouteRules, requests: readonly RouteRequest[]): string {
  const rows = requests.map(({ method, path }) => {
    const match = matchRequest(rules, { method, path, host: '', headers: {} });
    if (!match.ok) return [method, path, '-', `denied, path_not_canonical: ${match.reason}`, '-'];
    const [{ rule }] = match.matched;
    const route = rules.routes.find((candidate) => candidate === rule);
    const place = route === undefined ? 'default' : `line ${route.position.line}: ${formatPath(route.path)}`;
    return [method, path, place, formatAccess(rule.access), formatLimits(rule)];
  });
  return formatTable([['METHOD', 'PATH', 'RULE', 'REQUIRES', 'LIMIT'], ...rows]);
}

/** Empty without limits. */
function formatDomain(
  rules: RouteRules,
  settings: Pick<Settings, 'extAuthzRateLimitDomain'> | undefined,
): string {
  if (!hasLimits(rules)) return '';
  const { env } = settingsSpec.extAuthzRateLimitDomain;
  return `Domain of the limits: ${rules.policy.limitDomain ?? settings?.extAuthzRateLimitDomain ?? `that of ${env}`}\n`;
}

function formatPath({ source, pattern }: RoutePath): string {
  return pattern.ignoreCase ? `${source} (any case)` : source;
}

function formatAccess(access: Access): string {
  if (access.type === 'Public') return 'nothing (public)';
  if (access.type !== 'Authenticated') return 'denied for everyone (deny)';
  const { roles, assurance, anonymousUsers, audiences } = access;
  const user = anonymousUsers ? 'any user, including anonymous' : 'a signed-in user';
  const role = roles === undefined ? '' : `, role ${roles.join(' or ')}`;
  const audience = audiences === undefined ? '' : `, token for ${audiences.join(' or ')}`;
  return `${user}${role}${assurance === 'aal1' ? '' : `, at least ${assurance}`}${audience}`;
}

function formatLimits({ access, limits }: PolicyRule): string {
  if (limits.length === 0 || access.type === 'Denied') return '-';
  return limits.map(({ keys }) => `[${keys.join(', ')}]`).join(' ');
}

export function formatTable(rows: readonly (readonly string[])[]): string {
  return alignColumns(rows)
    .map((line) => `${line}\n`)
    .join('');
}
