import type { AuthenticatedAccess } from '../compile/access.ts';
import type { CallerIdentity } from './caller.ts';
import type { MatchedPolicy } from './match-request.ts';

/** HTTP status of each reason for which a policy denies a request, by its error code. */
export const denialStatuses = {
  path_not_canonical: 400,
  method_not_upper_case: 400,
  no_authorization: 401,
  /** The token is for another audience. */
  bad_jwt: 401,
  insufficient_aal: 401,
  role_not_allowed: 403,
  anonymous_not_allowed: 403,
  issuer_not_allowed: 403,
  credential_not_allowed: 403,
  plan_not_allowed: 403,
  insufficient_scope: 403,
  route_denied: 403,
  over_request_rate_limit: 429,
  policy_invalid: 503,
} as const;

/** A denial that does not depend on the caller. */
export function findFixedReason(
  matched: readonly MatchedPolicy[],
): 'route_denied' | 'policy_invalid' | undefined {
  for (const { rule } of matched) {
    if (rule.access.type === 'Denied') return 'route_denied';
    if (rule.access.type === 'Invalid') return 'policy_invalid';
  }
  return undefined;
}

type UnmetCondition =
  | 'bad_jwt'
  | 'role_not_allowed'
  | 'insufficient_aal'
  | 'anonymous_not_allowed'
  | 'issuer_not_allowed'
  | 'credential_not_allowed'
  | 'plan_not_allowed'
  | 'insufficient_scope';

/** The first condition of an access that a caller does not meet. */
export function findUnmetCondition(
  access: AuthenticatedAccess,
  identity: CallerIdentity,
): UnmetCondition | undefined {
  const { audiences, roles, assurance, anonymousUsers } = access;
  if (audiences !== undefined && !audiences.some((name) => identity.audiences.includes(name)))
    return 'bad_jwt';
  if (roles !== undefined && !roles.includes(identity.role)) return 'role_not_allowed';
  // The levels sort as text: aal1, aal2, aal3.
  if (identity.aal < assurance) return 'insufficient_aal';
  if (identity.isAnonymous && !anonymousUsers) return 'anonymous_not_allowed';
  return findUnmetOfPolicy(access, identity);
}

/** The conditions that only policies have. */
function findUnmetOfPolicy(
  { scopes, plans, credentials, issuers }: AuthenticatedAccess,
  { scope = '', plan, kind, issuer }: CallerIdentity,
): UnmetCondition | undefined {
  // API keys have no issuer.
  if (issuers !== undefined && (issuer === undefined || !issuers.includes(issuer)))
    return 'issuer_not_allowed';
  if (credentials !== undefined && !credentials.some((credential) => credentialKinds[credential] === kind))
    return 'credential_not_allowed';
  if (plans !== undefined && !plans.includes(plan)) return 'plan_not_allowed';
  if (scopes === undefined) return undefined;
  const granted = scope.split(' ');
  return scopes.every((wanted) => granted.includes(wanted)) ? undefined : 'insufficient_scope';
}

/** Kinds of callers by the credentials of a policy. */
const credentialKinds: Readonly<Record<string, string>> = {
  User: 'user',
  Client: 'client',
  ApiKey: 'api_key',
};
