import type { CompiledPolicy, PolicyRule } from '../compile/compile.ts';
import type { PolicySearch, PolicyTable, RoutedRequest } from '../compile/policy-table.ts';
import { type PathSegments, parseRequestPath, readLiterally } from '../match/request-path.ts';
import type { RouteHit } from '../match/route.ts';

/** A policy of a request, and the rule in it. */
export interface MatchedPolicy {
  readonly policy: CompiledPolicy;
  readonly rule: PolicyRule;
}

export type RequestMatch =
  | {
      readonly ok: true;
      /** All of them must allow the request. */
      readonly matched: readonly [MatchedPolicy, ...MatchedPolicy[]];
      /** Rules of routes that take the request. */
      readonly hits: readonly RouteHit[];
    }
  | FailedMatch;

export interface FailedMatch {
  readonly ok: false;
  readonly problem: 'ambiguous_path' | 'lower_case_method' | 'unknown_route';
  readonly reason: string;
}

/** Finds the policies of a request, else the fallback, and the rule in each. */
export function matchRequest(
  { policy: fallback }: { readonly policy: CompiledPolicy },
  request: RoutedRequest,
  table?: PolicyTable,
): RequestMatch {
  // Gateways compare methods exactly, and upstreams may ignore their case.
  if (lowerCase.test(request.method)) return lowerCaseMethod;
  const parsed = parseRequestPath(request.method, request.path);
  if (!parsed.ok) return ambiguous(parsed.reason);
  const { own, alternatives } = parsed.path;
  const search = table?.find(request, own, fallback);
  if (table !== undefined && search === undefined) return unknownRoute;
  const matched = matchRules(search, { fallback, request, path: own });
  const { policies, hits = [] } = search ?? {};
  for (const path of alternatives) {
    const other = matchRules(table?.find(request, path, fallback), { fallback, request, path });
    if (!isSame(matched, other)) return otherReading;
  }
  const literal = table?.hasRoutes === true && own ? readLiterally(request.path, own) : undefined;
  if (literal !== undefined && !haveSame(policies, table?.find(request, literal, fallback)?.policies))
    return otherLiteral;
  return { ok: true, matched, hits };
}

interface RuleOptions {
  readonly fallback: CompiledPolicy;
  readonly request: RoutedRequest;
  readonly path: PathSegments | undefined;
}

function matchRules(
  search: PolicySearch | undefined,
  { fallback, request, path }: RuleOptions,
): [MatchedPolicy, ...MatchedPolicy[]] {
  const [first = fallback, ...others] = search?.policies ?? [];
  const match = (policy: CompiledPolicy): MatchedPolicy => ({
    policy,
    rule: findRule(policy, request, path),
  });
  return [match(first), ...others.map(match)];
}

function findRule(
  { rules, fallback }: CompiledPolicy,
  request: RoutedRequest,
  path: PathSegments | undefined,
): PolicyRule {
  return (path && rules.find(request, path)) ?? fallback;
}

function isSame(some: readonly MatchedPolicy[], others: readonly MatchedPolicy[]): boolean {
  return (
    some.length === others.length &&
    some.every(({ policy, rule }, index) => policy === others[index]?.policy && rule === others[index]?.rule)
  );
}

function haveSame(some: readonly CompiledPolicy[] = [], others: readonly CompiledPolicy[] = []): boolean {
  return some.length === others.length && some.every((policy, index) => policy === others[index]);
}

const ambiguous = (reason: string): RequestMatch => ({ ok: false, problem: 'ambiguous_path', reason });

const otherReading = ambiguous(
  'without path parameters (;), or up to an encoded ? or #, another rule matches',
);
const otherLiteral = ambiguous('a gateway that does not decode its escapes matches another route');
const lowerCase = /[a-z]/;
const lowerCaseMethod: RequestMatch = {
  ok: false,
  problem: 'lower_case_method',
  reason: 'the method has lower-case letters',
};
const unknownRoute: RequestMatch = {
  ok: false,
  problem: 'unknown_route',
  reason: 'the route that the gateway has matched is not known yet',
};
