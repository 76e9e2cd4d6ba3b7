import type { JsonObject } from '@tollgate/kit/json';
import { parseLimitOverride } from '@tollgate/policies/decide/limit-override';
import { errors } from '../errors.ts';
import { maxMetadataBytes } from '../users/metadata.ts';

export interface Organization {
  readonly id: string;
  readonly name: string;
  /** Unique; for URLs. */
  readonly slug: string;
  readonly plan: string | undefined;
  /** `{ requests_per_unit, unit }`: the limit that all members share. */
  readonly limit: JsonObject | undefined;
  readonly metadata: JsonObject;
  /** Role of users who join by a verified domain of their email. Undefined: they cannot. */
  readonly domainRole: string | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Absent values are omitted. */
export function toOrganizationJson(organization: Organization): JsonObject {
  const { id, name, slug, plan, limit, metadata, domainRole, createdAt, updatedAt } = organization;
  return {
    ...{ id, name, slug, metadata },
    ...(plan !== undefined && { plan }),
    ...(limit !== undefined && { limit }),
    ...(domainRole !== undefined && { domain_role: domainRole }),
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  };
}

/** An organization with the role of the user. */
export function toMembershipJson({
  organization,
  role,
}: {
  readonly organization: Organization;
  readonly role: string;
}): JsonObject {
  return { ...toOrganizationJson(organization), role };
}

const maxNameChars = 100;

/** @throws AppError `validation_failed` */
export function readOrganizationName(name = ''): string {
  const trimmed = name.trim();
  // The name is in invitations, which must not advertise other sites.
  const forbidden = /\p{Cc}|\p{Cf}|:\/\/|\bwww\.|[\p{L}\p{N}]\.\p{L}{2,}\//iu;
  const isInvalid = trimmed === '' || trimmed.length > maxNameChars || forbidden.test(trimmed);
  if (isInvalid)
    throw errors.validation_failed({
      message: `name must have 1 to ${maxNameChars} characters, without control characters and URLs`,
    });
  return trimmed;
}

/** A label of a host name, so that a slug can be one. */
const slugForm = /^[a-z0-9](?:-?[a-z0-9])*$/;
const minSlugChars = 2;
const maxSlugChars = 63;
/** Names that apps use next to slugs in URLs. */
const reservedSlugs: readonly string[] = [
  ...['admin', 'api', 'app', 'auth', 'login', 'logout', 'me', 'new', 'null', 'settings', 'undefined', 'www'],
];

/** @throws AppError `validation_failed` */
export function readSlug(slug: string): string {
  if (!slugForm.test(slug) || slug.length < minSlugChars || slug.length > maxSlugChars)
    throw errors.validation_failed({
      message: `slug must have ${minSlugChars} to ${maxSlugChars} lower-case letters, digits and single dashes between them`,
    });
  if (reservedSlugs.includes(slug)) throw errors.validation_failed({ message: `slug ${slug} is reserved` });
  return slug;
}

/** A slug for a name. Different names may have the same. */
export function slugFromName(name: string, suffix: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, maxSlugChars - suffix.length - 1)
    .replace(/-$/, '');
  const isUsable = plain.length >= minSlugChars && !reservedSlugs.includes(plain);
  return isUsable ? plain : `org-${suffix}`;
}

/** Longest plan, as in `app_metadata`. */
const maxPlanChars = 255;

/** Undefined for none. @throws AppError `validation_failed` */
export function readPlan(plan: string): string | undefined {
  if (plan.length > maxPlanChars)
    throw errors.validation_failed({ message: `plan is longer than ${maxPlanChars} characters` });
  return plan || undefined;
}

/** Undefined for none. @throws AppError `validation_failed` */
export function readLimit(limit: JsonObject): JsonObject | undefined {
  if (Object.keys(limit).length === 0) return undefined;
  const parsed = parseLimitOverride(limit);
  if (!parsed.ok) throw errors.validation_failed({ message: `limit: ${parsed.reason}` });
  if (parsed.limit === undefined) return undefined;
  const { requestsPerUnit, unit } = parsed.limit;
  return { requests_per_unit: requestsPerUnit, unit: unit.toLowerCase() };
}

/** @throws AppError `validation_failed` */
export function readOrganizationMetadata(metadata: JsonObject): JsonObject {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  const limit = maxMetadataBytes.app_metadata;
  if (bytes > limit)
    throw errors.validation_failed({ message: `metadata has ${bytes} bytes as JSON, the limit is ${limit}` });
  return metadata;
}
