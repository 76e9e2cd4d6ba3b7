import type { CompiledMatch } from './request-match.ts';

/** A rule of a route at some gateways, with the policies that hold there. */
export interface RouteRule {
  /** Empty if the rule has no name. */
  readonly sectionName: string;
  /** Hosts and wildcards in lower case; `*` for every host. */
  readonly hosts: readonly string[];
  /** Any of them; one that could not be compiled is `uncertain`. */
  readonly matches: readonly RouteMatch[];
  /** `namespace/name` of the policy that applies; empty if there is none. */
  readonly policy: string;
  /** Names of policies whose overrides hold in addition. */
  readonly overrides: readonly string[];
  /** Gateways, each with a port, and with a listener if that has TLS, that have this rule. */
  readonly gateways: readonly string[];
}

interface RouteMatch {
  readonly match: CompiledMatch;
  /** It is unknown which requests match: what no more specific match takes is denied. */
  readonly uncertain: boolean;
  /** Names of headers that it compares, in lower case. */
  readonly headers: readonly string[];
}

/** An HTTPRoute or a GRPCRoute; or a Gateway, whose rules are its listeners. */
export interface Route {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly createdMs: number;
  readonly rules: readonly RouteRule[];
}

/** The route that a gateway has matched. */
export interface RouteReference {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Name of the rule; empty if it has none. */
  readonly sectionName: string;
}

/** The rule of a route that takes a request. */
export interface RouteHit {
  readonly route: Route;
  readonly rule: RouteRule;
  readonly uncertain: boolean;
}
