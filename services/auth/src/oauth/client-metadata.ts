import { type Static, Type } from 'typebox';
import { optionalFlag, optionalText, optionalTexts } from '../http/api.ts';
import { findRedirectUriProblem, isWebUri } from './client-uris.ts';
import { isScope, splitScope } from './scopes.ts';

/**
 * Members of clients that are stored as JSON. `scope` has the scopes that the client may ask users
 * for, separated by spaces; without it these are all.
 *
 * @see RFC 7591 §2, OpenID Connect Dynamic Client Registration §2, RP-Initiated Logout §3.1
 */
export const metadataMembers = {
  post_logout_redirect_uris: optionalTexts,
  scope: optionalText,
  application_type: optionalText,
  contacts: optionalTexts,
  policy_uri: optionalText,
  tos_uri: optionalText,
  initiate_login_uri: optionalText,
  default_max_age: Type.Optional(Type.Number()),
  default_acr_values: optionalTexts,
  require_auth_time: optionalFlag,
  software_id: optionalText,
  software_version: optionalText,
  /** @see OpenID Connect Back-Channel Logout §2.2 */
  backchannel_logout_uri: optionalText,
  /** Logout tokens always have `sid`. */
  backchannel_logout_session_required: optionalFlag,
  /** @see RFC 9126 §6 */
  require_pushed_authorization_requests: optionalFlag,
  /** Whether it always proves possession of a key. @see RFC 9449 §5.2 */
  dpop_bound_access_tokens: optionalFlag,
  /** The header `typ` of its access tokens. @see RFC 9068 §2.1 */
  access_token_typ: optionalText,
  /** Types that it may ask for. @see RFC 9396 §10 */
  authorization_details_types: optionalTexts,
};

/** Members that only administrators set. */
export const adminMembers = {
  /** Workloads that may act as the client. @see RFC 7523 §2.1 */
  workload_identities: Type.Optional(
    Type.Array(Type.Object({ issuer: Type.String(), subject: Type.String() })),
  ),
};

const storedMembers = { ...metadataMembers, ...adminMembers };

/** Names of all members that are stored as JSON. */
export const metadataNames: readonly string[] = Object.keys(storedMembers);

const schema = Type.Object(storedMembers);

export type ClientMetadata = Static<typeof schema>;

/** @see RFC 9068 §2.1 https://www.rfc-editor.org/rfc/rfc9068#section-2.1 */
const profileType = 'at+jwt';

/** The type of the access tokens of a client. */
export function accessTokenType({ access_token_typ: typ }: ClientMetadata): 'at+jwt' | 'JWT' {
  return typ === profileType ? profileType : 'JWT';
}

/** Values of the claim `acr`. @see OpenID Connect Core §2 */
export const acrValues = ['aal1', 'aal2'] as const;

const maxItems = 10;
/** Clusters, repositories and environments of a service. */
const maxWorkloads = 50;
const maxTextChars = 255;
const maxScopeChars = 1024;

/** Returns the problem of a value that has passed the schema. */
type Check = (value: unknown) => string | undefined;

const isShort: Check = (value) =>
  String(value).length <= maxTextChars ? undefined : `cannot exceed ${maxTextChars} characters`;
const isUri: Check = (value) => (isWebUri(String(value)) ? undefined : 'must be a valid URL');

function each(check: Check): Check {
  return (value) => {
    const values: readonly unknown[] = Array.isArray(value) ? value : [];
    if (values.length > maxItems) return `cannot exceed ${maxItems} items`;
    return values.map(check).find((problem) => problem !== undefined);
  };
}

const checks: Readonly<Record<keyof ClientMetadata, Check>> = {
  post_logout_redirect_uris: each((uri) => findRedirectUriProblem(String(uri))),
  scope: (scope) =>
    String(scope).length <= maxScopeChars && splitScope(String(scope)).every(isScope)
      ? undefined
      : 'must be names of scopes, separated by spaces',
  application_type: (type) => (type === 'web' || type === 'native' ? undefined : "must be 'web' or 'native'"),
  contacts: each(isShort),
  policy_uri: isUri,
  tos_uri: isUri,
  initiate_login_uri: (uri) => (/^https:/i.test(String(uri)) ? isUri(uri) : 'must be an https URL'),
  default_max_age: (age) =>
    Number.isInteger(age) && Number(age) >= 0 && Number(age) < 1e9
      ? undefined
      : 'must be a number of seconds',
  // Voluntary, as `acr_values` is: a user with a second factor verifies it in any case.
  default_acr_values: each((level) =>
    acrValues.some((known) => known === level) ? undefined : `must only contain ${acrValues.join(', ')}`,
  ),
  require_auth_time: () => undefined,
  software_id: isShort,
  software_version: isShort,
  backchannel_logout_uri: (uri) => (String(uri).includes('#') ? 'must have no fragment' : isUri(uri)),
  backchannel_logout_session_required: () => undefined,
  require_pushed_authorization_requests: () => undefined,
  dpop_bound_access_tokens: () => undefined,
  workload_identities: findWorkloadProblem,
  authorization_details_types: each(isShort),
  access_token_typ: (typ) => (typ === profileType ? undefined : `must be ${profileType}`),
};

function findWorkloadProblem(value: unknown): string | undefined {
  const workloads: readonly unknown[] = Array.isArray(value) ? value : [];
  if (workloads.length > maxWorkloads) return `cannot exceed ${maxWorkloads} items`;
  const isComplete = (workload: unknown) =>
    ['issuer', 'subject'].every((name) => {
      const text: unknown = Object.getOwnPropertyDescriptor(Object(workload), name)?.value;
      return typeof text === 'string' && text !== '' && text.length <= maxTextChars;
    });
  return workloads.every(isComplete)
    ? undefined
    : `must have the name of an issuer and the sub of its tokens, of 1 to ${maxTextChars} characters`;
}

/** The metadata with the given members, of which empty ones are removed. */
export function mergeMetadata(before: ClientMetadata, given: ClientMetadata): ClientMetadata {
  const merged = Object.entries({ ...before, ...definedOnly(given) });
  return Object.fromEntries(
    merged.filter(([name, value]) => metadataNames.includes(name) && !isEmpty(value)),
  );
}

function definedOnly(given: ClientMetadata): ClientMetadata {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function isEmpty(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0);
}

export function findMetadataProblem(metadata: ClientMetadata): string | undefined {
  for (const [name, check] of Object.entries(checks)) {
    const value: unknown = Object.entries(metadata).find(([key]) => key === name)?.[1];
    const problem = value === undefined ? undefined : check(value);
    if (problem !== undefined) return `${name}: ${problem}`;
  }
  return undefined;
}
