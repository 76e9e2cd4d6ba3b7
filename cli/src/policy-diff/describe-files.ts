import type { Access } from '@tollgate/policies/compile/access';
import type { LimitDescriptor } from '@tollgate/policies/compile/limits';
import type { LoadedPolicies } from '@tollgate/policies/files/load';
import type { RouteRule, RouteRules } from '@tollgate/policies/routes-file/route-rules';
import { policyDomainPrefix } from '@tollgate/rules/rule-document';
import type { Rule, RuleNode } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import { type Describe, describeAccess, describePolicy, sayOf } from './describe-policy.ts';
import type { Statement } from './statement.ts';

/** Everything that files say about who may call, and how much. */
export function describeFiles({ policies, routes, limits }: LoadedPolicies): readonly Statement[] {
  return [
    ...policies.flatMap((policy) => describePolicy(policy, policy.name)),
    ...(routes === undefined ? [] : describeRoutes(routes.rules)),
    ...[...limits.domains]
      .filter(([domain]) => !domain.startsWith(policyDomainPrefix))
      .flatMap(([domain, node]) => describeRules(node, sayOf(`domain ${domain}`))),
  ];
}

function describeRoutes({ routes, policy }: RouteRules): readonly Statement[] {
  const say = sayOf('routes file');
  const describe = (
    part: string,
    { access, limits }: { readonly access: Access; readonly limits: readonly LimitDescriptor[] },
  ) => [
    ...describeAccess(access, part, say),
    say(part, 'limits by', { kind: 'all of', items: limits.map(({ keys }) => keys.join('+')) }, 'stricter'),
  ];
  const order = routes.map(formatRoute).join(', ');
  return [
    ...describe('default', policy.fallback),
    ...(routes.length > 1 ? [say('', 'order of routes', { kind: 'text', text: order })] : []),
    ...routes.flatMap((route) => describe(`route ${formatRoute(route)}`, route)),
  ];
}

function formatRoute({ path, methods }: RouteRule): string {
  return [...(methods ?? []), path.source].join(' ');
}

/** All rules below a node. */
function describeRules(node: RuleNode, say: Describe): readonly Statement[] {
  const rule = node.match?.rule;
  const below = [...(node.children?.values() ?? [])].flatMap((child) => describeRules(child, say));
  return rule === undefined ? below : [...describeRule(rule, say), ...below];
}

function describeRule(rule: Rule, say: Describe): readonly Statement[] {
  const { path, unit, unitSeconds: seconds, requestsPerUnit: requests, unlimited, rate, shadowMode } = rule;
  const part = `limit ${path}`;
  const text = unlimited ? 'unlimited' : `${requests} per ${unit ?? formatPeriod(seconds)}`;
  const value = {
    requests: unlimited ? Number.POSITIVE_INFINITY : requests,
    seconds: unlimited ? 1 : seconds,
  };
  return [
    say(part, 'requests', { kind: 'rate', rate: value, text }, 'stricter'),
    ...(rate === undefined ? [] : [say(part, 'algorithm', { kind: 'text', text: rate.algorithm })]),
    ...(shadowMode ? [say(part, 'shadow mode', { kind: 'text', text: 'on' }, 'looser')] : []),
  ];
}
