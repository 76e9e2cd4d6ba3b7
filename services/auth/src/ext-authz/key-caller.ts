import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import type { LimitOverride } from '@tollgate/policies/decide/limit-override';
import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import { isWellFormedKey, maxImportedChars } from '../api-keys/key-format.ts';
import { keyRoleOf } from '../api-keys/role.ts';
import type { ApiKeyState } from '../api-keys/state-store.ts';
import type { Settings } from '../config/settings.ts';
import { isBanned } from '../users/user.ts';
import { parsePlan, readAdded, readPlan } from './claim-values.ts';
import { forbidden, invalidToken } from './denials.ts';
import type { AuthzDenied } from './result.ts';

export type KeyProblem =
  | 'invalid_api_key'
  | 'api_key_disabled'
  | 'api_key_expired'
  | 'user_not_found'
  | 'user_banned'
  | 'api_key_network_not_allowed';

export type KeySettings = Pick<
  Settings,
  'apiKeyPrefix' | 'apiKeyImportedPrefixes' | 'apiKeyRoles' | 'extAuthzDefaultPlan'
>;

/** An imported key may have any text. */
const anyText = '*';

/** Whether a key may exist, so that the database must be read. */
export function mayExist(key: string, { apiKeyPrefix, apiKeyImportedPrefixes }: KeySettings): boolean {
  if (isWellFormedKey(key, apiKeyPrefix)) return true;
  if (key === '' || key.length > maxImportedChars) return false;
  return apiKeyImportedPrefixes.some((prefix) => prefix === anyText || key.startsWith(prefix));
}

/** Whether a bearer token is an API key by its start. */
export function isKeyToken(token: string, starts: readonly string[]): boolean {
  return starts.some((start) => token.startsWith(start));
}

/** How bearer tokens start that are API keys. */
export function keyStarts({ apiKeyPrefix, apiKeyImportedPrefixes }: KeySettings): readonly string[] {
  return [`${apiKeyPrefix}_`, ...apiKeyImportedPrefixes.filter((prefix) => prefix !== anyText)];
}

/** Values of the headers that may have a key. The settings may name `constructor`. */
export function readKeyHeaders<T>(
  headers: Readonly<Record<string, T | undefined>>,
  names: readonly string[],
): readonly T[] {
  return names.flatMap((name) => (Object.hasOwn(headers, name) ? (headers[name] ?? []) : []));
}

/** Why a key is rejected. */
export function findKeyProblem(
  { disabled, expiresAtMs, userId, user, networks }: ApiKeyState,
  { nowMs, address }: { readonly nowMs: number; readonly address: () => string },
): KeyProblem | undefined {
  if (disabled) return 'api_key_disabled';
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return 'api_key_expired';
  if (userId !== undefined && user === undefined) return 'user_not_found';
  if (user !== undefined && isBanned(user, nowMs)) return 'user_banned';
  return networks === undefined || networks.has(address()) ? undefined : 'api_key_network_not_allowed';
}

/** The answer to a request with a rejected key. */
export function denyKey(problem: KeyProblem): AuthzDenied {
  return problem === 'api_key_network_not_allowed' ? forbidden(problem) : invalidToken(problem);
}

interface IdentityOptions {
  readonly settings: KeySettings;
  readonly mapping: ClaimMapping;
  /** The limit in the metadata of the user who owns the key. */
  readonly ownerLimit: LimitOverride | undefined;
}

/** The caller of a valid key. */
export function keyIdentity(
  state: ApiKeyState,
  { settings, mapping, ownerLimit }: IdentityOptions,
): CallerIdentity {
  const { id, userId, orgId, scopes, user, organization } = state;
  const values = { claims: {}, stored: user };
  const ownerPlan = parsePlan(user?.appMetadata ?? {}) ?? organization?.plan;
  return {
    kind: 'api_key',
    userId,
    sessionId: undefined,
    key: { id, limit: state.limit ?? ownerLimit ?? organization?.limit },
    clientId: undefined,
    orgId,
    orgRole: undefined,
    role: keyRoleOf(state.role, user?.role, settings.apiKeyRoles),
    plan: state.plan ?? readPlan(mapping, values, ownerPlan) ?? settings.extAuthzDefaultPlan,
    scope: scopes.length === 0 ? undefined : scopes.join(' '),
    audiences: [],
    aal: 'aal1',
    isAnonymous: user?.isAnonymous ?? false,
    issuer: undefined,
    claims: readAdded(mapping, values),
    limit: ownerLimit,
    orgLimit: organization?.limit,
  };
}
