import { Counter, Gauge, type Registry } from 'prom-client';

/** Told of each attempt to load the rules of routes. */
export type CountRouteRulesLoad = (succeeded: boolean) => void;

/** Shows whether the rules of routes in force are those of their file. */
export function measureRouteRules(registry: Registry): CountRouteRulesLoad {
  const registers = [registry];
  const loads = new Counter({
    name: 'auth_ext_authz_route_rules_loads_total',
    help: 'Attempts to load the rules of routes, by result',
    labelNames: ['result'],
    registers,
  });
  const isCurrent = new Gauge({
    name: 'auth_ext_authz_route_rules_current',
    help: 'Whether the last attempt succeeded (1), or older rules are in force because the file is bad (0)',
    registers,
  });
  for (const result of ['success', 'failure']) loads.inc({ result }, 0);
  // Without a file there is none that could be bad.
  isCurrent.set(1);
  return (succeeded) => {
    loads.inc({ result: succeeded ? 'success' : 'failure' });
    isCurrent.set(succeeded ? 1 : 0);
  };
}
