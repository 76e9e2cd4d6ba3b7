import { everyPath } from './path-pattern.ts';
import type { RequestMatch, ValueMatch } from './request-match.ts';

/** Numbers that decide between matches of a request. The higher one goes first. */
export type Precedence = Readonly<Record<PrecedenceKey, number>>;

type PrecedenceKey =
  | 'pathType'
  | 'pathTypeOfIstio'
  | 'pathLength'
  | 'prefixLength'
  | 'method'
  | 'headers'
  | 'methodAndHeaders'
  | 'exactHeaders'
  | 'queryParams'
  | 'exactQueryParams';

/**
 * Orders of matches: that of Gateway API, which leaves open where regular expressions belong, and
 * those of gateways that differ from it. Gateways are not told apart, so a request may have
 * policies by each order.
 */
const orders = {
  'gateway-api': ['pathType', 'prefixLength', 'method', 'headers', 'queryParams'],
  'envoy-gateway': [
    ...['pathType', 'pathLength', 'methodAndHeaders', 'exactHeaders', 'queryParams', 'exactQueryParams'],
  ],
  istio: ['pathTypeOfIstio', 'prefixLength', 'method', 'headers', 'queryParams'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type RouteOrder = keyof typeof orders;

export const routeOrders: readonly [RouteOrder, ...RouteOrder[]] = ['gateway-api', 'envoy-gateway', 'istio'];

const pathTypes = { Exact: 2, RegularExpression: 1, PathPrefix: 0 } as const;
const pathTypesOfIstio = { Exact: 2, RegularExpression: 0, PathPrefix: 1 } as const;

export function precedenceOf(match: RequestMatch): Precedence {
  const { path = everyPath, methods, headers = [], queryParams = [] } = match;
  const { type, value } = path;
  const pathLength = type === 'PathPrefix' && value === '/' ? 0 : value.length;
  const method = methods === undefined ? 0 : 1;
  return {
    pathType: pathTypes[type],
    pathTypeOfIstio: pathTypesOfIstio[type],
    pathLength,
    prefixLength: type === 'PathPrefix' ? value.replace(/\/+$/, '').length : pathLength,
    method,
    headers: headers.length,
    methodAndHeaders: method + headers.length,
    exactHeaders: method + countExact(headers),
    queryParams: queryParams.length,
    exactQueryParams: countExact(queryParams),
  };
}

function countExact(matches: readonly ValueMatch[]): number {
  return matches.filter(({ type = 'Exact' }) => type === 'Exact').length;
}

/** The texts by which routes of the same age are sorted, from their `namespace/name`. */
export const tieBreakers: Readonly<Record<RouteOrder, (name: string) => string>> = {
  'gateway-api': (name) => name,
  // By namespace first: `shop` goes before `shop-eu`.
  'envoy-gateway': (name) => name.replace('/', '\0'),
  istio: (name) => name.split('/').toReversed().join('.'),
};

/** Negative if `a` goes before `b`; 0 if they are equally specific. */
export function comparePrecedence(a: Precedence, b: Precedence, order: RouteOrder): number {
  for (const key of orders[order]) {
    const difference = b[key] - a[key];
    if (difference !== 0) return difference;
  }
  return 0;
}
