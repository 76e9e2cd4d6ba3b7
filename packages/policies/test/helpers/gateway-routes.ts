import { runSteps } from '@tollgate/kit/time';
import { compileRoute } from '../../src/compile/routes.ts';
import type { RequestAttributes } from '../../src/match/request-match.ts';
import { type PathSegments, parseRequestPath, readLiterally } from '../../src/match/request-path.ts';
import { RouteIndex } from '../../src/match/route-index.ts';
import type { RandomRule } from './random-routes.ts';
import { tableOf } from './routes.ts';

export interface LabelledRule extends RandomRule {
  /** Name of the route, and position of the rule in it. */
  readonly label: string;
}

/**
 * Compares our answer with that of Envoy Gateway, and says how it differs. Our table in its order
 * must find the rule, and so must the index, which does not know the order.
 *
 * @param envoys label of the rule that Envoy has matched
 */
export function compareWithGateway(
  rules: readonly LabelledRule[],
  one: RequestAttributes,
  envoys: string | undefined,
): string | undefined {
  const parsed = parseRequestPath(one.method, one.path);
  // Such a request is denied.
  if (!parsed.ok || parsed.path.own === undefined) return undefined;
  const { own } = parsed.path;
  const { table, index } = tablesOf(rules);
  const literal = readLiterally(one.path, own);
  const exact = table.find(one, literal ?? own);
  if (!one.host.includes('.:') && !one.host.endsWith('.') && exact !== envoys)
    return `the table says ${exact}`;
  const policiesOf = (path: PathSegments) => index.find(one, path).map(({ rule }) => rule.policy);
  const hits = policiesOf(own);
  // Such a request is denied, too.
  if (literal !== undefined && policiesOf(literal).join() !== hits.join()) return undefined;
  // Without a route there is no upstream to protect.
  return envoys === undefined || hits.includes(envoys) ? undefined : `the index says ${hits.join(', ')}`;
}

/** The policy of a rule is its route and index. */
function tablesOf(rules: readonly LabelledRule[]) {
  const routes = rules.map(({ hosts, matches, route, label }) =>
    compileRoute(route.name.split('/')[0] ?? '', {
      ...{ kind: 'HTTPRoute', name: route.name.split('/')[1] ?? '', createdMs: BigInt(route.createdMs) },
      rules: [
        {
          ...{ sectionName: '', hosts, policy: label, overrides: [], gateways: ['infra/main:80'] },
          matches: matches.map((match) => JSON.stringify(match)),
        },
      ],
    }),
  );
  const entries = routes.flatMap(({ rules: own, createdMs, namespace, name }) =>
    own.map(({ hosts, matches, policy }) => ({
      ...{
        hosts,
        matches: matches.map(({ match }) => match),
        route: { createdMs, name: `${namespace}/${name}` },
      },
      value: policy,
    })),
  );
  return { table: tableOf(entries, 'envoy-gateway'), index: runSteps(RouteIndex.build(routes)) };
}

/** Whether gateways that order matches differently have other routes for a request. */
export function dependsOnOrder(rules: readonly LabelledRule[], one: RequestAttributes): boolean {
  const parsed = parseRequestPath(one.method, one.path);
  const { own } = parsed.ok ? parsed.path : {};
  return own !== undefined && tablesOf(rules).index.find(one, own).length > 1;
}
