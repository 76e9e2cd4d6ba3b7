import fc from 'fast-check';
import type { RequestAttributes } from '../../src/match/request-match.ts';
import type { LabelledRule } from './gateway-routes.ts';
import { type RandomRule, randomRequest, randomRules } from './random-routes.ts';

export type WorldRequest = RequestAttributes;

/** Routes that are alone on a listener, and requests to it. */
export interface World {
  readonly number: number;
  readonly rules: readonly LabelledRule[];
  readonly requests: readonly WorldRequest[];
}

/** Listeners that a Gateway may have. */
const maxWorlds = 60;

export function randomWorlds(seed: number, requests: number): readonly World[] {
  const perWorld = Math.ceil(requests / maxWorlds);
  const rules = fc.sample(randomRules, { seed, numRuns: maxWorlds });
  return rules.map((own, number) => ({
    number,
    rules: label(own, number),
    requests: fc.sample(unusualRequest, { seed: seed + number + 1, numRuns: perWorld }),
  }));
}

/**
 * Names are unique in the Gateway. All routes have the same age, because Envoy Gateway does not
 * read it from a file.
 */
function label(rules: readonly RandomRule[], world: number): readonly LabelledRule[] {
  const positions = new Map<string, number>();
  return rules.map((rule) => {
    const namespace = rule.route.createdMs === 0 ? '' : '-eu';
    const name = rule.route.name.replace('/', `${namespace}/w${world}-`);
    const position = positions.get(name) ?? 0;
    positions.set(name, position + 1);
    const hosts = rule.hosts.includes('*') ? ['*'] : rule.hosts;
    return { ...rule, hosts, route: { name, createdMs: 0 }, label: `${name} ${position}` };
  });
}

/** Most requests stay as they are. */
const unusualRequest = fc.tuple(randomRequest, fc.nat({ max: 19 })).map(([request, kind]): WorldRequest => {
  const { host, path } = request;
  switch (kind) {
    case 0:
      return { ...request, host: host.toUpperCase() };
    case 1:
      return { ...request, host: host.replace('test', 'test.') };
    case 2:
      return { ...request, path: path.replace('caf%C3%A9', 'caf%c3%a9').replace('/a', '/%61') };
    case 3:
      return { ...request, path: path.replace('/b', '/b;v=1') };
    case 4:
      return { ...request, path: path.replace('/a', '/x/../a').replace('/b', '/./b') };
    case 5:
      return { ...request, path: path.replace('/a', '//a') };
    default:
      return request;
  }
});
