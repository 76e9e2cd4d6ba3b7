import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import type { IssuerRule } from '@tollgate/policies/routes-file/issuer';
import type { Settings } from '../config/settings.ts';
import type { Accepted, TrustedIssuer } from '../issuers/issuers.ts';
import type { Claims } from '../issuers/verify.ts';
import { keyOfToken } from '../keys/bound-tokens.ts';
import { claimAudiences, claimText, maxScopeChars } from './claim-text.ts';
import { readAdded, readAttribute } from './claim-values.ts';
import { KnownCaller } from './identity-headers.ts';

/** Issuers with the mapping of their claims. */
export function trustIssuers(
  rules: readonly IssuerRule[],
  { extAuthzDefaultPlan }: Pick<Settings, 'extAuthzDefaultPlan'>,
): readonly TrustedIssuer<KnownCaller>[] {
  return rules.map((rule) => ({
    definition: rule.definition,
    accept: (claims) => toForeignCaller(rule, claims, extAuthzDefaultPlan),
  }));
}

/** The caller of a verified token of another issuer. */
function toForeignCaller(rule: IssuerRule, claims: Claims, defaultPlan: string): Accepted<KnownCaller> {
  const { definition, mapping, isPrefixed } = rule;
  const values = { claims, stored: undefined };
  const read = (name: Parameters<typeof readAttribute>[1]) => readAttribute(mapping, name, values);
  const kind = findKind(rule, claims);
  if (kind === undefined) return { ok: false, reason: 'token is of no kind of its issuer' };
  const subject = mapping.attributes.has('user_id') ? read('user_id') : claimText(claims.sub);
  const userId = kind === 'user' ? subject : undefined;
  if (kind === 'user' && userId === undefined) return { ok: false, reason: 'token names no user' };
  const clientId = read('client_id') ?? findClient(rule, claims, kind);
  if (kind === 'client' && clientId === undefined) return { ok: false, reason: 'token names no client' };
  const caller: CallerIdentity = {
    kind,
    userId: userId !== undefined && isPrefixed ? `${definition.name}|${userId}` : userId,
    sessionId: undefined,
    key: undefined,
    clientId,
    orgId: read('org_id'),
    orgRole: read('org_role'),
    role: read('role') ?? '',
    plan: read('plan') ?? defaultPlan,
    scope: mapping.attributes.has('scope')
      ? read('scope')
      : (claimText(claims.scope, maxScopeChars) ?? claimText(claims.scp, maxScopeChars)),
    audiences: claimAudiences(claims),
    aal: 'aal1',
    isAnonymous: false,
    issuer: definition.name,
    claims: readAdded(mapping, values),
    limit: undefined,
    orgLimit: undefined,
  };
  return { ok: true, caller: new KnownCaller(caller, [], keyOfToken(claims)) };
}

function findKind({ definition, kinds }: IssuerRule, claims: Claims): CallerIdentity['kind'] {
  if (definition.isKubernetes) return 'client';
  if (kinds.client?.isTrue(claims)) return 'client';
  return kinds.user === undefined || kinds.user.isTrue(claims) ? 'user' : undefined;
}

/** Without a mapping: the authorized party (OpenID Connect), or the client (RFC 9068). */
function findClient(
  { definition, mapping }: IssuerRule,
  claims: Claims,
  kind: CallerIdentity['kind'],
): string | undefined {
  if (mapping.attributes.has('client_id')) return undefined;
  if (definition.isKubernetes) return claimText(claims.sub);
  const named = claimText(claims.azp) ?? claimText(claims.client_id);
  return kind === 'client' ? (named ?? claimText(claims.sub)) : named;
}
