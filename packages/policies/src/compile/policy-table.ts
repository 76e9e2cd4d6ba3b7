import { runSteps } from '@tollgate/kit/time';
import { everyPath } from '../match/path-pattern.ts';
import { compileMatch, type RequestAttributes } from '../match/request-match.ts';
import type { PathSegments } from '../match/request-path.ts';
import { type RouteHit, RouteIndex, type RouteReference } from '../match/route-index.ts';
import { RouteTable } from '../match/route-table.ts';
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
  readonly #hosts: RouteTable<CompiledPolicy>;
  readonly #byName: ReadonlyMap<string, CompiledPolicy>;
  readonly #routes: RouteIndex;
  /**
   * Whether requests are matched to routes, so that it matters what gateways say about them. With a
   * policy for routes, a route that is not known must not get the default access.
   */
  readonly hasRoutes: boolean;
  /** Filled as requests come. */
  readonly #outcomes = new Map<RouteHit, Outcome>();

  constructor(policies: readonly NamedPolicy[], routes: RouteIndex = runSteps(RouteIndex.build([]))) {
    const every = compileMatch({ path: everyPath });
    const matches = every.ok ? [every.match] : [];
    this.headers = new Set([...routes.headers, ...policies.flatMap(({ policy }) => policy.headers)]);
    this.#byName = new Map(policies.map(({ name, policy }) => [name, policy]));
    this.#routes = routes;
    this.hasRoutes = routes.size > 0 || policies.some(({ isForRoutes }) => isForRoutes === true);
    this.#hosts = new RouteTable(
      policies.map(({ name, createdMs, hosts, policy }) => ({
        hosts,
        matches,
        route: { name, createdMs },
        value: policy,
      })),
    );
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
    if (!this.hasRoutes) return { policies: [this.#hosts.find(request, rootPath) ?? fallback], hits: noHits };
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
    const ofHost = this.#hosts.find(request, rootPath);
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

const noHits: readonly RouteHit[] = [];
const rootPath: PathSegments = { segments: [], hasTrailingSlash: false };
