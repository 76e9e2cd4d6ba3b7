import { readFileSync } from 'node:fs';
import t from 'tap';
import type { RequestAttributes } from '../src/match/request-match.ts';
import { compareWithGateway, type LabelledRule } from './helpers/gateway-routes.ts';

interface World {
  readonly rules: readonly LabelledRule[];
  readonly requests: readonly (readonly [request: RequestAttributes, route: string | null])[];
}

// `make route-differences ARGS='--seed=1 --requests=2400 --record=<file>'` writes it, and compares
// 10,000 requests by default.
const file = new URL('./testdata/envoy-gateway-routes.jsonl', import.meta.url);

t.test('requests have the route that Envoy Gateway 1.9.1 has matched', async (t) => {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  let routed = 0;
  for (const line of lines) {
    // Parsed boundary: our own file.
    const { rules, requests } = JSON.parse(line) as World;
    for (const [request, route] of requests) {
      const problem = compareWithGateway(rules, request, route ?? undefined);
      if (problem !== undefined) t.fail(problem, { request, route, rules });
      if (route !== null) routed += 1;
    }
  }
  t.ok(routed > 200, `${routed} requests with a route`);
});
