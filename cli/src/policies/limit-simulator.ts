import type { LimitDescriptor } from '@tollgate/policies/compile/limits';
import { type Descriptor, toDescriptor } from '@tollgate/policies/decide/descriptors';
import type { MatchedPolicy } from '@tollgate/policies/decide/match-request';
import { type SimulatedLimit, SimulatedLimiter } from '@tollgate/ratelimit/simulated-limiter';
import type { RuleSet, Unit } from '@tollgate/rules/rule-set';
import { formatPeriod } from '@tollgate/rules/windows';
import type { SimulatedRequest } from './simulator.ts';

/** A limit of a request, and its counter after the request. */
export interface LimitOutcome {
  /** `namespace/name`; undefined for a routes file. */
  readonly policy: string | undefined;
  /** The attributes that it counts by, for a limit of a routes file, which has no name. */
  readonly name: string;
  /**
   * `not_counted`: the request lacks one of the attributes. `on_trial`: the limit does not decide.
   * `no_rule`: the files have no number for a limit of the routes file.
   */
  readonly state: 'ok' | 'exceeded' | 'unlimited' | 'not_counted' | 'on_trial' | 'no_rule';
  readonly requests?: number;
  /** Length of the window, such as `minute` or `90s`. */
  readonly per?: string;
  readonly remaining?: number;
  readonly resetSeconds?: number;
}

/** Domain of limits of a routes file without `limit_domain`, as in the settings. */
const defaultDomain = 'ext_authz';

/** Counts requests in memory. */
export class LimitSimulator {
  readonly #limiter: SimulatedLimiter;
  readonly #rules: RuleSet;

  constructor(rules: RuleSet, nowMs: () => number) {
    this.#rules = rules;
    this.#limiter = new SimulatedLimiter(rules, nowMs);
  }

  /** Counts a request against the limits of a policy. */
  async take(
    { policy, rule }: MatchedPolicy,
    { caller: identity, method, headers, address: remoteAddress }: SimulatedRequest,
  ): Promise<{ readonly allowed: boolean; readonly limits: readonly LimitOutcome[] }> {
    const domain = policy.limitDomain ?? defaultDomain;
    const request = { identity, method, headers, remoteAddress, rulePath: rule.label };
    const named = rule.limits.map((limit) => {
      const place = { policy: policy.name, name: limit.name ?? limit.keys.join(', ') };
      return { place, limit, descriptor: toDescriptor(limit, request) };
    });
    const counted = named.flatMap(({ limit, descriptor }) =>
      descriptor === undefined || limit.mode === 'Trial' ? [] : [descriptor],
    );
    const descriptors = counted.map(({ entries, limit }) => ({ entries, limit: toLimit(limit) }));
    const isKnown = this.#rules.domains.has(domain) && counted.length > 0;
    const decision = isKnown
      ? await this.#limiter.decide({ domain, descriptors })
      : { allowed: true, limits: [] };
    const limits = named.map(({ place, limit, descriptor }): LimitOutcome => {
      if (limit.mode === 'Trial') return { ...place, state: 'on_trial' };
      if (descriptor === undefined) return { ...place, state: 'not_counted' };
      return { ...place, ...describe(decision.limits[counted.indexOf(descriptor)], limit) };
    });
    return { allowed: decision.allowed, limits };
  }
}

function toLimit(own: Descriptor['limit']) {
  // The names of the wire are those of rules in upper case.
  return own && { requestsPerUnit: own.requestsPerUnit, unit: own.unit.toLowerCase() as Unit };
}

function describe(
  known: SimulatedLimit | undefined,
  { mode }: LimitDescriptor,
): Omit<LimitOutcome, 'policy' | 'name'> {
  if (known?.outcome === 'unlimited') return { state: 'unlimited' };
  const { requestsPerUnit: requests, remaining, resetSeconds, unit, rule } = known ?? {};
  if (known === undefined || requests === undefined) return { state: 'no_rule' };
  const period = rule?.periodSeconds;
  const per = unit ?? (period === undefined ? undefined : formatPeriod(period));
  return {
    state: known.exceeded && mode === undefined ? 'exceeded' : 'ok',
    requests,
    ...(per !== undefined && { per }),
    ...(remaining !== undefined && { remaining }),
    ...(resetSeconds !== undefined && { resetSeconds }),
  };
}
