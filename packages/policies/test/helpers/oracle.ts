import { RE2JS } from 're2js';
import type { RequestAttributes, RequestMatch, ValueMatch } from '../../src/match/request-match.ts';
import type { RandomRule } from './random-routes.ts';

/**
 * The position of the rule that a request belongs to, found the slow way: it lists every match of
 * every rule, and sorts the ones that match by the words of Gateway API.
 */
export function findRuleSlowly(rules: readonly RandomRule[], request: RequestAttributes): number | undefined {
  const host = mostSpecificHost(rules, request);
  if (host === undefined) return undefined;
  const candidates = rules.flatMap(({ hosts, matches, route }, rule) =>
    hosts.includes(host)
      ? matches.filter((match) => matchesRequest(match, request)).map((match) => ({ match, route, rule }))
      : [],
  );
  const [best] = candidates.sort((a, b) => {
    const [left, right] = [rank(a.match), rank(b.match)];
    const index = left.findIndex((part, at) => part !== right[at]);
    if (index !== -1) return (right[index] ?? 0) - (left[index] ?? 0);
    if (a.route.createdMs !== b.route.createdMs) return a.route.createdMs - b.route.createdMs;
    if (a.route.name !== b.route.name) return a.route.name < b.route.name ? -1 : 1;
    return a.rule - b.rule;
  });
  return best?.rule;
}

function mostSpecificHost(rules: readonly RandomRule[], request: RequestAttributes): string | undefined {
  const [name = ''] = request.host.split(':');
  const all = new Set(rules.flatMap(({ hosts }) => hosts));
  if (all.has(name)) return name;
  const wildcards = [...all].filter((host) => host.startsWith('*.') && name.endsWith(host.slice(1)));
  const [longest] = wildcards.sort((a, b) => b.length - a.length);
  return longest ?? (all.has('*') ? '*' : undefined);
}

function matchesRequest(
  { path, methods, headers, queryParams }: RequestMatch,
  request: RequestAttributes,
): boolean {
  const [plain = '', query = ''] = request.path.split('?');
  const parameters = new Map(
    query
      .split('&')
      .toReversed()
      .map((pair) => pair.split('=') as [string, string]), // of this form
  );
  return (
    (path === undefined || matchesPath(path.type, path.value, plain)) &&
    (methods === undefined || methods.includes(request.method)) &&
    (headers ?? []).every((match) => matchesValue(match, request.headers[match.name.toLowerCase()])) &&
    (queryParams ?? []).every((match) => matchesValue(match, parameters.get(match.name)))
  );
}

function matchesPath(type: string, value: string, path: string): boolean {
  if (type === 'Exact') return path === value;
  if (type === 'RegularExpression') return RE2JS.compile(value).testExact(path);
  const prefix = value.endsWith('/') ? value.slice(0, -1) : value;
  return path === prefix || path.startsWith(`${prefix}/`);
}

function matchesValue({ type, value }: ValueMatch, found: string | undefined): boolean {
  if (found === undefined) return false;
  return type === 'RegularExpression' ? RE2JS.compile(value).testExact(found) : found === value;
}

/** Higher goes first. */
function rank({ path, methods, headers, queryParams }: RequestMatch): readonly number[] {
  const { type, value } = path ?? { type: 'PathPrefix', value: '/' };
  return [
    { Exact: 2, RegularExpression: 1, PathPrefix: 0 }[type],
    (type === 'PathPrefix' && value.endsWith('/') ? value.slice(0, -1) : value).length,
    methods === undefined ? 0 : 1,
    (headers ?? []).length,
    (queryParams ?? []).length,
  ];
}
