import type { AssuranceLevel } from '../session.ts';
import type { Place } from './placed-value.ts';
import { matchesPath, type RoutePath } from './route-path.ts';

/** Which requests pass, and what of. The first route that matches decides; `fallback` where none does. */
export interface RouteRules {
  readonly routes: readonly RouteRule[];
  readonly fallback: RouteDemand;
}

/** What is demanded of requests with these methods to these paths. */
export interface RouteRule {
  readonly path: RoutePath;
  /** Undefined: all. With `GET` there is `HEAD`. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly demand: RouteDemand;
  /** Of the path in the file of rules. */
  readonly place: Place;
}

/** What a request must bring. */
export type RouteDemand =
  /** Nothing. */
  | { readonly access: 'public' }
  /** It never passes. */
  | { readonly access: 'deny' }
  /** A token of somebody who has these. */
  | {
      readonly access: 'authenticated';
      /** One of these; undefined: any. */
      readonly roles: readonly string[] | undefined;
      readonly aal: AssuranceLevel;
      /** May anonymous users pass? */
      readonly anonymous: boolean;
    };

/** A token of a user who has signed in. */
export const signedIn: RouteDemand = {
  access: 'authenticated',
  roles: undefined,
  aal: 'aal1',
  anonymous: false,
};

/** The rules without a file: every path needs a user who has signed in. */
export const defaultRules: RouteRules = { routes: [], fallback: signedIn };

/** The first route that matches; undefined when none does. The time is bounded by the number of routes times that of segments. */
export function findRoute(
  { routes }: RouteRules,
  method: string,
  segments: readonly string[] | undefined,
): RouteRule | undefined {
  if (segments === undefined) return undefined;
  return routes.find(
    ({ methods, path }) => (methods === undefined || methods.has(method)) && matchesPath(path, segments),
  );
}

/** What is valid, and protects less than it seems to. */
export function routeRuleWarnings({ routes, fallback }: RouteRules): string[] {
  const lines = routes.filter(({ demand }) => demand.access === 'deny').map(({ place }) => place.line);
  if (fallback.access !== 'public' || lines.length === 0) return [];
  return [
    `default is public, so access: deny (line ${lines.join(', ')}) protects only the paths that are written there: an upstream that ` +
      'serves the same resource under another path, such as in another case, is open. Prefer default: deny or authenticated, with public routes',
  ];
}
