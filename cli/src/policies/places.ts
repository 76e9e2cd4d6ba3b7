import type { PolicyRule } from '@tollgate/policies/compile/compile';
import { allLimits } from '@tollgate/policies/compile/limits';
import type { MatchedPolicy } from '@tollgate/policies/decide/match-request';
import type { LoadedPolicies, LoadedPolicy } from '@tollgate/policies/files/load';

/** A line of a file. */
export interface Place {
  readonly file: string;
  readonly line: number;
  /** JSON path in the policy. */
  readonly field?: string;
  /** The line, without the spaces around it. */
  readonly text: string;
}

/** Conditions of an access by the reason that a caller does not meet them. */
const conditions: Readonly<Record<string, string>> = {
  route_denied: 'type',
  role_not_allowed: 'roles',
  insufficient_scope: 'scopes',
  plan_not_allowed: 'plans',
  insufficient_aal: 'assurance',
  anonymous_not_allowed: 'anonymousUsers',
  credential_not_allowed: 'credentials',
  bad_jwt: 'audiences',
  issuer_not_allowed: 'issuers',
};

/** Finds the lines that say what was decided. */
export class PlaceFinder {
  readonly #loaded: LoadedPolicies;

  constructor(loaded: LoadedPolicies) {
    this.#loaded = loaded;
  }

  /** The line of the access of a rule, and of a condition in it. Undefined without a policy. */
  ofAccess({ policy, rule }: MatchedPolicy, reason: string | undefined): Place | undefined {
    const found = this.#find(policy.name);
    if (found === undefined) return this.#ofRoute(rule);
    const part = rule.field ?? 'spec';
    const [index = -1] = (/\d+/.exec(part) ?? []).map(Number);
    const { spec } = found.resource;
    const hasOwn = rule.field === undefined || spec.rules?.[index]?.access !== undefined;
    const condition = conditions[reason ?? ''];
    if (reason === undefined) return toPlace(found, `${part}.access`);
    // Without an access, callers must have a credential.
    const parent = hasOwn ? part : 'spec';
    return toPlace(found, condition === undefined ? `${parent}.access` : `${parent}.access.${condition}`);
  }

  /** The line of a limit, or that of its route. */
  ofLimit({ policy, rule }: MatchedPolicy, name: string | undefined): Place | undefined {
    const found = this.#find(policy.name);
    if (found === undefined) return this.#ofRoute(rule);
    const placed = allLimits(found.resource.spec).find(({ limit }) => limit.name === name);
    return placed && toPlace(found, placed.field);
  }

  #find(name: string | undefined): LoadedPolicy | undefined {
    return this.#loaded.policies.find((policy) => policy.name === name);
  }

  #ofRoute(rule: PolicyRule): Place | undefined {
    const { routes } = this.#loaded;
    const route = routes?.rules.routes.find((candidate) => candidate === rule);
    return routes && route && toLine(routes.source, route.position.line);
  }
}

function toPlace({ document }: LoadedPolicy, field: string): Place {
  return { ...toLine(document.source, document.positionOf(field).line), field };
}

function toLine({ path: file, text }: { readonly path: string; readonly text: string }, line: number): Place {
  return { file, line, text: text.split('\n')[line - 1]?.trim() ?? '' };
}
