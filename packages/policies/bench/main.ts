// node packages/policies/bench/main.ts   time to find the route of a request among 10, 1,000 and
// 10,000 routes, with the parsing of its path; JSON lines
import { runSteps } from '@tollgate/kit/time';
import { compileMatch } from '../src/match/request-match.ts';
import { parseRequestPath } from '../src/match/request-path.ts';
import type { Route } from '../src/match/route.ts';
import { RouteIndex } from '../src/match/route-index.ts';

const routesPerHost = 10;

/** Routes of services: a prefix each, most with a rule for a method or an exact path below it. */
function createRoutes(count: number): Route[] {
  return Array.from({ length: count }, (_, index) => {
    const service = `/api/v1/service-${index % routesPerHost}`;
    const path =
      index % 3 === 0
        ? { type: 'Exact' as const, value: `${service}/health` }
        : { type: 'PathPrefix' as const, value: service };
    const result = compileMatch({ path, methods: index % 3 === 1 ? ['GET', 'HEAD'] : undefined });
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    const rule = {
      ...{ sectionName: '', hosts: [hostOf(index)], policy: '', overrides: [], gateways: ['infra/main:80'] },
      matches: [{ match: result.match, uncertain: false, headers: [] }],
    };
    return {
      ...{ kind: 'HTTPRoute', namespace: 'team', name: `route-${index}`, createdMs: index },
      rules: [rule],
    };
  });
}

function hostOf(index: number): string {
  const host = Math.floor(index / routesPerHost);
  return host % 4 === 3 ? `*.tenant-${host}.example.com` : `shop-${host}.example.com`;
}

const lookups = 1_000_000;

function measure(count: number): number {
  const index = runSteps(RouteIndex.build(createRoutes(count)));
  const requests = Array.from({ length: 1_000 }, (_, number) => ({
    method: number % 2 === 0 ? 'GET' : 'POST',
    host: hostOf(number % count).replace('*', 'a'),
    headers: {},
    path: `/api/v1/service-${number % routesPerHost}/orders/${number}?page=2`,
  }));
  let found = 0;
  const run = (): void => {
    for (let lookup = 0; lookup < lookups; lookup += 1) {
      const request = requests[lookup % requests.length];
      if (request === undefined) continue;
      const parsed = parseRequestPath(request.method, request.path);
      if (parsed.ok && parsed.path.own !== undefined && index.find(request, parsed.path.own).length > 0)
        found += 1;
    }
  };
  run();
  found = 0;
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  if (found < lookups / 4) throw new Error(`only ${found} of ${lookups} requests have a route`);
  return ((user + system) * 1_000) / lookups;
}

for (const routes of [10, 1_000, 10_000])
  process.stdout.write(`${JSON.stringify({ routes, cpuNs: Math.round(measure(routes)) })}\n`);
