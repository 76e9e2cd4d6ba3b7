import { compareText } from '@tollgate/kit/text';
import { HostMap, normalizeHost } from '../match/hosts.ts';
import type { RequestAttributes } from '../match/request-match.ts';
import type { PathSegments } from '../match/request-path.ts';
import type { RouteHit, RouteReference } from '../match/route.ts';
import { RouteIndex } from '../match/route-index.ts';
import { type CompiledPolicy, createInvalidPolicy } from './compile.ts';

/** A policy that was compiled, and what decides between policies for the same host. */
export interface NamedPolicy {
  /** `namespace/name` */
  readonly name: string;
  /** Unix time in milliseconds. */
  readonly createdMs: number;
  readonly hosts: readonly string[];
  readonly policy: CompiledPolicy;
  /** Whether it is for objects of Gateway API. */
  readonly isForRoutes?: boolean;
}

/** A request, and the route that its gateway has matched. */
export interface RoutedRequest extends RequestAttributes {
  /** Undefined if the gateway does not say it. Never from headers, which clients can send. */
  readonly route?: RouteReference | undefined;
}

/** Where the policies of a request come from. */
export interface PolicySearch {
  /** All of them must allow the request. */
  readonly policies: readonly CompiledPolicy[];
  /** Rules of routes that take the request; empty if it has policies by its host only. */
  readonly hits: readonly RouteHit[];
}

/** Policies of a rule of a route. */
interface Outcome {
  readonly main: CompiledPolicy | undefined;
  /** The policy, and the overrides. */
  readonly policies: readonly CompiledPolicy[];
}

/** The policies in force by hosts and routes. Of two policies for a host, the older one applies. */
export class PolicyTable {
  /** Names of headers that policies compare or count by, in lower case. */
  readonly headers: ReadonlySet<string>;
  readonly #hosts: HostMap<NamedPolicy>;
  readonly #byName: ReadonlyMap<string, CompiledPolicy>;
  readonly #routes: RouteIndex;
  /**
   * Whether requests are matched to routes, so that it matters what gateways say about them. With a
   * policy for routes, a route that is not known must not get the default access.
   */
  readonly hasRoutes: boolean;
  /** Whether browsers sign in for any of the policies. */
  readonly hasBrowser: boolean;
  /** Filled as requests come. */
  readonly #outcomes = new Map<RouteHit, Outcome>();

  constructor(policies: readonly NamedPolicy[], routes: RouteIndex = RouteIndex.empty) {
    const headers = new Set(routes.headers);
    const byName = new Map<string, CompiledPolicy>();
    let hasPolicyForRoutes = false;
    for (const { name, policy, isForRoutes } of policies) {
      for (const header of policy.headers) headers.add(header);
      byName.set(name, policy);
      hasPolicyForRoutes ||= isForRoutes === true;
    }
    this.headers = headers;
    this.#byName = byName;
    this.#routes = routes;
    this.hasRoutes = routes.size > 0 || hasPolicyForRoutes;
    this.hasBrowser = policies.some(({ policy }) => policy.hasBrowser === true);
    this.#hosts = findOwners(policies);
  }

  /** A policy by its `namespace/name`. */
  named(name: string): CompiledPolicy | undefined {
    return this.#byName.get(name);
  }

  /**
   * The policies of a request. Undefined if its gateway has matched a route that is not known yet.
   *
   * @param path undefined for `OPTIONS *`, which belongs to the host, too
   * @param fallback applies where there is no policy
   */
  find(
    request: RoutedRequest,
    path: PathSegments | undefined,
    fallback: CompiledPolicy,
  ): PolicySearch | undefined {
    if (!this.hasRoutes) return { policies: [this.#findByHost(request) ?? fallback], hits: noHits };
    const { route } = request;
    const at = path ?? rootPath;
    const hits =
      route === undefined ? this.#routes.find(request, at) : this.#routes.findOf(route, request, at);
    return hits && { policies: this.#combine(hits, request, fallback), hits };
  }

  #combine(
    hits: readonly RouteHit[],
    request: RoutedRequest,
    fallback: CompiledPolicy,
  ): readonly CompiledPolicy[] {
    const [first] = hits;
    const isExact = request.route !== undefined;
    const outcome = first && hits.length === 1 ? this.#outcomeOf(first) : undefined;
    if (isExact && outcome?.main !== undefined) return outcome.policies;
    const ofHost = this.#findByHost(request);
    if (first === undefined) return [ofHost ?? fallback];
    if (outcome?.main !== undefined && ofHost === undefined) return outcome.policies;
    const all = new Set<CompiledPolicy>();
    for (const hit of hits) {
      const { main, policies } = this.#outcomeOf(hit);
      if (main === undefined) all.add(ofHost ?? fallback);
      for (const policy of policies) all.add(policy);
    }
    // Without the word of a gateway, the request may as well be for what has no objects of routes.
    if (!isExact && ofHost !== undefined) all.add(ofHost);
    return [...all];
  }

  #findByHost({ host }: RequestAttributes): CompiledPolicy | undefined {
    return this.#hosts.find(normalizeHost(host))?.policy;
  }

  #outcomeOf(hit: RouteHit): Outcome {
    const known = this.#outcomes.get(hit);
    if (known !== undefined) return known;
    const outcome = this.#resolve(hit);
    this.#outcomes.set(hit, outcome);
    return outcome;
  }

  #resolve({ rule, route, uncertain }: RouteHit): Outcome {
    if (uncertain) {
      const main = createInvalidPolicy(`${route.namespace}/${route.name}`);
      return { main, policies: [main] };
    }
    const main = rule.policy === '' ? undefined : this.#named(rule.policy);
    const overrides = rule.overrides.flatMap((name) => this.#named(name).overrides ?? []);
    return { main, policies: [...new Set([...(main ? [main] : []), ...overrides])] };
  }

  /** A policy that is not in the set denies, as one that was never valid. */
  #named(name: string): CompiledPolicy {
    return this.#byName.get(name) ?? createInvalidPolicy(name);
  }
}

function findOwners(policies: readonly NamedPolicy[]): HostMap<NamedPolicy> {
  const owners = new HostMap<NamedPolicy>();
  for (const policy of policies)
    for (const host of policy.hosts) {
      const owner = owners.get(host);
      if (owner === undefined || isOlder(policy, owner)) owners.set(host, policy);
    }
  return owners;
}

function isOlder(one: NamedPolicy, other: NamedPolicy): boolean {
  return (one.createdMs - other.createdMs || compareText(one.name, other.name)) < 0;
}

const noHits: readonly RouteHit[] = [];
const rootPath: PathSegments = { segments: [], hasTrailingSlash: false };
