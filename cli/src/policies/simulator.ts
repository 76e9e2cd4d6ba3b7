import type { CompiledPolicy } from '@tollgate/policies/compile/compile';
import { PolicyTable } from '@tollgate/policies/compile/policy-table';
import { denialStatuses, findFixedReason, findUnmetCondition } from '@tollgate/policies/decide/access';
import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import { type MatchedPolicy, matchRequest, type RequestMatch } from '@tollgate/policies/decide/match-request';
import type { LoadedPolicies } from '@tollgate/policies/files/load';
import { createDefaultRules } from '@tollgate/policies/routes-file/route-rules';
import { type LimitOutcome, LimitSimulator } from './limit-simulator.ts';
import { type Place, PlaceFinder } from './places.ts';

/** A request as the gateway sends it to the auth server. */
export interface SimulatedRequest {
  /** Undefined without a credential. */
  readonly caller: CallerIdentity | undefined;
  readonly method: string;
  readonly url: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** IP address of the client. */
  readonly address: string;
  /** `namespace/name` of the policy. Undefined: that of the host. */
  readonly policy: string | undefined;
}

type Reason = keyof typeof denialStatuses;

export interface Outcome {
  readonly allowed: boolean;
  /** 200 for a request that may pass. */
  readonly status: number;
  /** Error code of a denial. */
  readonly reason?: Reason;
  /** Details of a path that is refused. */
  readonly message?: string;
  /** `namespace/name`, `routes file`, or `default access` without either. */
  readonly policy: string;
  /** Paths of the rule; `default` where none matches. */
  readonly rule: string;
  /** The line that decided. */
  readonly decidedBy: Place | undefined;
  /** All limits of the rule. */
  readonly limits: readonly LimitOutcome[];
}

/** The question cannot be answered, such as for a policy that is not in the files. */
export class SimulationProblem extends Error {}

/** Decides on requests by files, as the auth server and the rate limit service would. */
export class PolicySimulator {
  readonly #loaded: LoadedPolicies;
  readonly #table: PolicyTable;
  readonly #fallback: CompiledPolicy;
  readonly #limiter: LimitSimulator;
  readonly #places: PlaceFinder;

  constructor(loaded: LoadedPolicies, nowMs: () => number) {
    this.#loaded = loaded;
    this.#table = new PolicyTable(
      // A file does not know when its object was created.
      loaded.policies.map(({ name, policy, resource: { spec } }) => ({
        ...{ name, policy, createdMs: 0, hosts: spec.hosts ?? [] },
      })),
    );
    this.#fallback = (loaded.routes?.rules ?? createDefaultRules()).policy;
    this.#places = new PlaceFinder(loaded);
    this.#limiter = new LimitSimulator(loaded.limits, nowMs);
  }

  /** @throws SimulationProblem */
  async decide(request: SimulatedRequest): Promise<Outcome> {
    const match = this.#match(request);
    if (!match.ok) {
      const reason = match.problem === 'lower_case_method' ? 'method_not_upper_case' : 'path_not_canonical';
      return { ...deny(reason), message: match.reason, ...nothing };
    }
    for (const one of match.matched) {
      const reason = findReason(one, request.caller);
      if (reason !== undefined)
        return { ...deny(reason), ...this.#describe(one, this.#places.ofAccess(one, reason)), limits: [] };
    }
    const outcomes = await Promise.all(match.matched.map((one) => this.#limiter.take(one, request)));
    const limits = outcomes.flatMap((one) => one.limits);
    const over = match.matched.find((_, index) => outcomes[index]?.allowed === false);
    const [first] = match.matched;
    if (over === undefined)
      return { ...allowed, ...this.#describe(first, this.#places.ofAccess(first, undefined)), limits };
    const exceeded = limits.find(({ state }) => state === 'exceeded');
    const place = this.#places.ofLimit(over, exceeded?.name);
    return { ...deny('over_request_rate_limit'), ...this.#describe(over, place), limits };
  }

  #match(request: SimulatedRequest): RequestMatch {
    const { method, url, headers, policy } = request;
    // The path stays as it is written: URL would normalize it.
    const [, host = '', path = ''] = /^[a-z]+:\/\/([^/?#]*)([^#]*)/i.exec(url) ?? [];
    const attributes = { method, host, path: path.startsWith('/') ? path : `/${path}`, headers };
    if (policy !== undefined) {
      const named = this.#table.named(policy);
      if (named === undefined) throw new SimulationProblem(`no policy is named ${policy}: ${this.#names()}`);
      return matchRequest({ policy: named }, attributes);
    }
    const match = matchRequest({ policy: this.#fallback }, attributes, this.#table);
    const isFallback = match.ok && match.matched[0].policy === this.#fallback;
    const ofRoutes = this.#loaded.policies.filter(({ resource }) => resource.spec.hosts === undefined);
    const [only, another] = ofRoutes;
    if (!isFallback || only === undefined) return match;
    if (another === undefined) return matchRequest({ policy: only.policy }, attributes);
    throw new SimulationProblem(
      `no policy has the host ${host}, and routes decide which of the others applies: name it, ${this.#names()}`,
    );
  }

  #names(): string {
    const names = this.#loaded.policies.map(({ name }) => name);
    return names.length === 0 ? 'there are none' : `there are ${names.join(', ')}`;
  }

  #describe(
    { policy: { name }, rule }: MatchedPolicy,
    decidedBy: Place | undefined,
  ): Pick<Outcome, 'policy' | 'rule' | 'decidedBy'> {
    const fallback = this.#loaded.routes === undefined ? 'default access' : 'routes file';
    return { policy: name ?? fallback, rule: rule.label ?? 'default', decidedBy };
  }
}

const allowed = { allowed: true, status: 200 };
const nothing = { policy: '', rule: '', decidedBy: undefined, limits: [] };

const deny = (reason: Reason) => ({ allowed: false, status: denialStatuses[reason], reason });

/** Why a policy denies a request, before its limits. */
function findReason(matched: MatchedPolicy, caller: CallerIdentity | undefined): Reason | undefined {
  const fixed = findFixedReason([matched]);
  const { access } = matched.rule;
  if (fixed !== undefined || access.type !== 'Authenticated') return fixed;
  return caller === undefined ? 'no_authorization' : findUnmetCondition(access, caller);
}
