import type { JsonObject } from '@tollgate/kit/json';
import { type CallerIdentity, type MappedAttribute, noClaims } from '@tollgate/policies/decide/caller';
import type { ClaimMapping, ClaimSource } from '@tollgate/policies/routes-file/claim-mapping';
import { valueAt } from '@tollgate/policies/routes-file/claim-path';
import { claimText, maxClaimChars, maxScopeChars } from './claim-text.ts';
import type { IdentityState } from './identity-cache.ts';

/** Values of the user in the database. */
export type StoredValues = Pick<IdentityState, 'role' | 'appMetadata' | 'isAnonymous' | 'organization'>;

/** The claims and the stored values of a caller. */
interface Values {
  readonly claims: Readonly<Record<string, unknown>>;
  readonly stored: StoredValues | undefined;
  /** Whether claims of the active organization are those of the server. Default false. */
  readonly hasOrganizations?: boolean;
}

/** The text of an attribute. Stored values replace the claims of their names. */
export function readAttribute(
  { attributes }: ClaimMapping,
  name: MappedAttribute,
  values: Values,
): string | undefined {
  const source = attributes.get(name);
  return source && readSource(source, values, name === 'scope' ? maxScopeChars : maxClaimChars);
}

/** The attributes that the file adds, without those of which the claim is missing. */
export function readAdded({ added }: ClaimMapping, values: Values): CallerIdentity['claims'] {
  if (added.size === 0) return noClaims;
  const read: Record<string, string> = Object.create(null);
  for (const [name, source] of added) {
    const text = readSource(source, values, maxClaimChars);
    if (text !== undefined) read[name] = text;
  }
  return read;
}

/** The limit that roles have, too: both are sent to upstreams with each request. */
const maxPlanChars = 255;

/** The stored plan, else the mapped claim; the other way round with `from: token`. */
export function readPlan(
  mapping: ClaimMapping,
  values: Values,
  storedPlan: string | undefined,
): string | undefined {
  const mapped = () => readAttribute(mapping, 'plan', values);
  return mapping.attributes.get('plan')?.fromToken ? (mapped() ?? storedPlan) : (storedPlan ?? mapped());
}

export function parsePlan({ plan }: JsonObject): string | undefined {
  return typeof plan === 'string' && plan !== '' && plan.length <= maxPlanChars ? plan : undefined;
}

function readSource(
  { path, fromToken }: ClaimSource,
  { claims, stored, hasOrganizations = false }: Values,
  maxChars: number,
): string | undefined {
  const [name, ...rest] = path;
  if (stored === undefined || fromToken) return claimText(valueAt(claims, path), maxChars);
  if (hasOrganizations && isOrganizationClaim(name))
    return claimText(valueAt(stored.organization?.[organizationClaims[name]], rest), maxChars);
  switch (name) {
    case 'app_metadata':
      return claimText(valueAt(stored.appMetadata, rest), maxChars);
    case 'role':
      return claimText(valueAt(stored.role, rest), maxChars);
    case 'is_anonymous':
      return claimText(valueAt(stored.isAnonymous, rest), maxChars);
    default:
      return claimText(valueAt(claims, path), maxChars);
  }
}

/** Claims of the active organization, which would outlast the membership in a token. */
const organizationClaims = { org_id: 'id', org_role: 'role', org_slug: 'slug' } as const;

function isOrganizationClaim(name: string | number | undefined): name is keyof typeof organizationClaims {
  return name !== undefined && Object.hasOwn(organizationClaims, name);
}
