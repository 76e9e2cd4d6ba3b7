import { runSteps } from '@tollgate/kit/time';
import fc from 'fast-check';
import t from 'tap';
import { compileRoute } from '../src/compile/routes.ts';
import { GatewayTables } from '../src/match/gateway-tables.ts';
import type { Route } from '../src/match/route.ts';
import { RouteIndex } from '../src/match/route-index.ts';
import { randomRequest, randomRules } from './helpers/random-routes.ts';
import { segmentsOf } from './helpers/routes.ts';

const randomGateways = fc.subarray(['infra/a:80', 'infra/b:80', 'infra/b:443/web'], { minLength: 1 });
const randomRoutes = fc
  .tuple(randomRules, fc.infiniteStream(fc.tuple(randomGateways, fc.nat({ max: 4 }))))
  .map(([rules, places]) =>
    rules.map(({ hosts, matches, route }, number): Route => {
      const { value } = places.next();
      const [gateways, kind]: [string[], number] = value ?? [[], 0];
      const rule = { sectionName: '', hosts: [...hosts], policy: '', overrides: [], gateways };
      return compileRoute('shop', {
        ...{ kind: kind === 0 ? 'Gateway' : 'HTTPRoute', name: `route-${number}` },
        createdMs: BigInt(route.createdMs),
        rules: [{ ...rule, matches: matches.map((match) => JSON.stringify(match)) }],
      });
    }),
  );

t.test('random changes: an index that was changed finds what a new one finds', async (t) => {
  let found = 0;
  const versions = fc.array(fc.infiniteStream(fc.boolean()), { minLength: 2, maxLength: 4 });
  const requests = fc.array(randomRequest, { minLength: 5, maxLength: 10 });
  const property = fc.property(randomRoutes, versions, requests, (routes, choices, requests) => {
    let changed = RouteIndex.empty;
    for (const isChosen of choices) {
      const chosen = routes.filter(() => isChosen.next().value === true);
      changed = runSteps(RouteIndex.build(chosen, changed));
      const fresh = runSteps(RouteIndex.build(chosen));
      for (const request of requests) {
        const [actual, expected] = [changed, fresh].map((index) =>
          index.find(request, segmentsOf(request.path)).map(({ route }) => route.name),
        );
        found += expected?.length ?? 0;
        if (actual?.toSorted().join() !== expected?.toSorted().join()) return false;
      }
    }
    return true;
  });
  fc.assert(property, { numRuns: 200 });
  t.ok(found > 400, `${found} rules`);
});

t.test('without a change, the index is the same', async (t) => {
  const routes = fc.sample(randomRoutes, 5).find(({ length }) => length > 1) ?? [];
  const index = runSteps(RouteIndex.build(routes));
  t.equal(runSteps(RouteIndex.build([...routes], index)), index);
  t.not(runSteps(RouteIndex.build(routes.slice(1), index)), index);
});

t.test('a Gateway without rules is forgotten', async (t) => {
  const routes = fc.sample(randomRoutes, 5).flat();
  const hits = routes.flatMap((route) => route.rules.map((rule) => ({ route, rule, uncertain: false })));
  const tables = runSteps(GatewayTables.empty.change(hits, new Set()));
  t.not(tables, GatewayTables.empty);
  t.equal(runSteps(tables.change([], new Set(hits))), GatewayTables.empty);
});
